from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import PlaceError
from recipes_orchestration.runner.task_folder import (
    MANIFEST,
    decode_line,
    encode_line,
    manifest_of,
    path_in_batch,
    read_manifest,
    write_manifest,
    write_whole,
)

from .task_folders import make_task

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(), JSON)


@given(OBJECTS)
def test_a_journal_line_says_what_was_written(value: dict[str, Any]):
    line = encode_line(value)
    assert decode_line(line) == value
    assert decode_line(line[:-1]) == value


@given(OBJECTS)
def test_a_journal_line_is_one_line_of_ascii(value: dict[str, Any]):
    line = encode_line(value)
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1


@given(OBJECTS, st.data())
def test_a_journal_line_with_one_other_byte_says_nothing(
    value: dict[str, Any], data: st.DataObject
):
    line = bytearray(encode_line(value))
    at = data.draw(st.integers(0, len(line) - 2))
    line[at] ^= data.draw(st.integers(1, 255))
    assert decode_line(bytes(line)) is None


@given(OBJECTS, st.data())
def test_a_part_of_a_journal_line_says_nothing(value: dict[str, Any], data: st.DataObject):
    line = encode_line(value)
    assert decode_line(line[: data.draw(st.integers(0, len(line) - 2))]) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_as_nothing(line: bytes):
    assert decode_line(line) is None


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": float("inf")}, {"a": {1}}])
def test_what_is_no_json_is_not_written(value: dict[str, Any]):
    with pytest.raises((ValueError, TypeError)):
        encode_line(value)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path):
    task = make_task(tmp_path, ["a/1.png", "a/\u2028é\uf7e9.png"], needs={})
    manifest = read_manifest(task.path)
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../..",
        "../../..",
        "../../../x",
        "a/../../../../x",
        "a\\b",
        "a\0b",
        "../../a/../..",
        "x" * 5000,
    ],
)
def test_a_path_that_leaves_the_batch_folder_is_refused(path: str):
    with pytest.raises(ValueError, match="leads out of its batch folder"):
        path_in_batch(path)


@pytest.mark.parametrize("path", ["../../pages/a.png", "../../code/abc", "../b", "c", "./a/../b"])
def test_a_path_within_the_batch_folder_is_taken(path: str):
    assert path_in_batch(path) == path


def changed(where: str, value: Any) -> Any:
    def change(manifest: dict[str, Any]) -> None:
        *parts, last = where.split(".")
        at: Any = manifest
        for part in parts:
            at = at[int(part) if part.isdigit() else part]
        at[int(last) if last.isdigit() else last] = value

    return pytest.param(change, id=f"{where}={str(value)[:30]}")


@pytest.mark.parametrize(
    "change",
    [
        changed("format", 2),
        changed("format", None),
        changed("task", "../x"),
        changed("task", "a b"),
        changed("steps", []),
        changed("steps", None),
        changed("steps.1.name", "size"),
        changed("steps.0.params", []),
        changed("steps.0.needs", [1]),
        changed("steps.0.run", ""),
        changed("pages", {}),
        changed("pages.0", []),
        changed("pages.0.file", "../../../../etc/passwd"),
        changed("pages.0.file", "/etc/passwd"),
        changed("pages.0.file_sha256", "abc"),
        changed("pages.0.sha256", 5),
        changed("pages.0.frame", -1),
        changed("pages.0.frame", True),
        changed("pages.0.steps", ["other"]),
        changed("pages.0.steps", ["size", "size"]),
        changed("pages.0.encoded", 1),
        changed("pages.0.page_id", "2.png"),
        changed("code", "../../../code"),
        changed("max_pixels", 0),
        changed("max_pixels", 1.5),
        changed("page_timeout", -1),
        changed("page_timeout", "600"),
        changed("needs", None),
        changed("runner", "0.1.0; rm -rf /"),
    ],
)
def test_a_manifest_that_is_not_right_is_refused_in_words(tmp_path: Path, change: Any):
    task = make_task(tmp_path, ["1.png", "2.png"])
    manifest = json.loads((task.path / MANIFEST).read_bytes())
    change(manifest)
    with pytest.raises(PlaceError, match=r"manifest.json is not right: .*Send the task again."):
        manifest_of(json.dumps(manifest).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"format": NaN}'])
def test_what_is_no_manifest_is_refused_in_words(data: bytes):
    with pytest.raises(PlaceError, match="is not right"):
        manifest_of(data)


def test_a_missing_manifest_is_said(tmp_path: Path):
    with pytest.raises(PlaceError, match=r"manifest.json: No such file"):
        read_manifest(tmp_path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "outcome.json"
    write_whole(path, b"first")
    with pytest.raises(TypeError):
        write_whole(path, "no bytes")  # pyright: ignore[reportArgumentType]
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        (path.name, b"first")
    ]
