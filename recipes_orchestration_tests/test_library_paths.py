"""Batch keys to library paths: one to one, and fit for every file system."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import LibraryError
from recipes_orchestration.library import paths

COMPONENT = st.lists(
    st.one_of(
        st.sampled_from("abzAZ09-_"),
        st.integers(0, 255).map(lambda byte: f":{byte:02X}"),
    ),
    min_size=1,
    max_size=120,
).map("".join)
LONG = st.builds(lambda text, times: text * times, COMPONENT, st.integers(1, 12))
KEY = st.builds(
    lambda parts, number: "/".join([*parts, f"{number:04d}"]),
    st.lists(LONG, min_size=1, max_size=8),
    st.integers(1, 99999),
)


@given(KEY)
def test_any_batch_key_gives_a_short_portable_path(key: str) -> None:
    path = paths.batch_folder("letters", "read", key)
    assert re.fullmatch(r"[-A-Za-z0-9_~/]+", path)
    assert all(0 < len(component) <= 200 for component in path.split("/"))
    assert len(path) <= 800
    assert path.startswith("letters/read/")


@given(KEY, KEY)
def test_different_keys_give_different_paths(one: str, other: str) -> None:
    paths_of = {paths.batch_folder("r", "s", one), paths.batch_folder("r", "s", other)}
    assert len(paths_of) == len({one, other})


@given(KEY)
def test_a_path_gives_its_key_back_or_says_that_it_was_shortened(key: str) -> None:
    below = paths.batch_folder("r", "s", key).removeprefix("r/s/")
    found = paths.batch_of_folder(below)
    assert found == key or (found is None and "~~" in below)


def test_keys_whose_beginnings_agree_stay_apart() -> None:
    start = "a" * 250
    one, other = (paths.batch_folder("r", "s", f"{start}{end}/0001") for end in "xy")
    assert one != other
    assert one.split("/")[2].startswith("a" * 150 + "~~")


def test_a_short_key_is_readable_in_its_path() -> None:
    assert paths.batch_folder("letters", "read", "a:20b/c/0001") == "letters/read/a~20b/c/0001"
    assert paths.batch_folder("letters", "read", ":2E/0001") == "letters/read/~2E/0001"


@pytest.mark.parametrize(
    "key",
    ["", "/", "a//1", "../../x", "a/../b", "a/.", "/a/1", "a/1/", "a b/1", "a~2E/1", "::/1", "a:2e",
     "a:2", "ä/1", "a\n/1", "a/1\n"],
)  # fmt: skip
def test_what_is_not_a_batch_key_is_refused(key: str) -> None:
    with pytest.raises(LibraryError, match="not a batch key"):
        paths.batch_folder("r", "s", key)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".hidden", "a.b", "-a", "a" * 151, "ä"])
def test_a_name_that_is_no_path_component_is_refused(name: str) -> None:
    with pytest.raises(LibraryError, match="cannot be a path"):
        paths.step_folder(name, "s")
    with pytest.raises(LibraryError, match="cannot be a path"):
        paths.file_name(name, 1, "0" * 16)


def test_file_names_of_tasks_and_parts_never_meet() -> None:
    names = {
        paths.file_name(task, part, "0123456789abcdef")
        for task in ("t", "t-0001", "t-1")
        for part in (None, 1, 11)
    }
    assert len(names) == 9
    assert all(paths.is_result_file(name) for name in names)


@pytest.mark.parametrize("name", [".writing-1-ab", ".x.parquet", "x.parquet.tmp", "x.json"])
def test_temporary_and_foreign_files_are_not_results(name: str) -> None:
    assert not paths.is_result_file(name)
