from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import PlaceError
from recipes_orchestration.runner.journal import Journal, entries_of, lines_of
from recipes_orchestration.runner.task_folder import encode_line
from recipes_orchestration.runner.work import Failure, FailureKind, Outcome


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "results.jsonl"


def landed(page: str, value: object = 1, step: str = "read") -> Outcome:
    return Outcome(page, step, 0.5, value=value)


def write(path: Path, *outcomes: Outcome) -> bytes:
    with Journal(path) as journal:
        for each in outcomes:
            journal.append(each)
    return path.read_bytes()


def pages(path: Path) -> list[str]:
    with path.open("rb") as stream:
        return [each.page_id for each in entries_of(stream)]


def test_values_are_read_back(path: Path):
    write(path, landed("a", {"text": "é\u2028"}), landed("b", None))
    with Journal(path) as journal:
        assert journal.value("a", "read") == {"text": "é\u2028"}
        assert journal.value("b", "read") is None
        journal.append(landed("c", 3))
        assert journal.value("c", "read") == 3


def test_a_failure_is_written_and_has_no_value(path: Path):
    write(path, Outcome("a", "read", 0.5, failure=Failure(FailureKind.DIED, "it died")))
    with Journal(path) as journal:
        assert (journal.written("a", "read"), journal.landed("a", "read")) == (True, False)
        with pytest.raises(KeyError):
            journal.value("a", "read")
    with path.open("rb") as stream:
        assert [(each.failed, each.words) for each in entries_of(stream)] == [("died", "it died")]


def test_a_torn_line_is_cut_off_and_written_anew(path: Path):
    whole = write(path, landed("a"), landed("b"), landed("c"))
    line = len(whole) // 3
    for end in range(2 * line, 3 * line):
        path.write_bytes(whole[:end])
        with Journal(path) as journal:
            assert not journal.written("c", "read")
            assert path.read_bytes() == whole[: 2 * line]
            journal.append(landed("c"))
        assert path.read_bytes() == whole


def test_garbage_behind_the_last_line_is_cut_off(path: Path):
    whole = write(path, landed("a"))
    path.write_bytes(whole + b"\0" * 5000 + b"garbage\n\n00000000 {}\n")
    assert write(path, landed("b")) == whole + encode_line(
        {"page": "b", "step": "read", "seconds": 0.5, "value": 1}
    )


def test_garbage_between_lines_is_taken_out(path: Path):
    one, two = write(path, landed("a")), write(path.with_name("other"), landed("b", 2))
    path.write_bytes(one + b"\0\0\0garbage\n" + two)
    with Journal(path) as journal:
        assert journal.value("b", "read") == 2
        journal.append(landed("c", 3))
        assert journal.value("c", "read") == 3
    assert path.read_bytes().startswith(one + two)
    assert pages(path) == ["a", "b", "c"]


def test_a_line_that_is_there_twice_counts_once(path: Path):
    one, two = write(path, landed("a", 1)), write(path.with_name("other"), landed("a", 2))
    path.write_bytes(one + two + one)
    assert write(path) == one


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"page": 1, "step": "read", "seconds": 1, "value": 1},
        {"page": "a", "step": "read", "seconds": "1", "value": 1},
        {"page": "a", "step": "read", "seconds": -1, "value": 1},
        {"page": "a", "step": "read", "seconds": 10**400, "value": 1},
        {"page": "a", "step": "read", "seconds": True, "value": 1},
        {"page": "a", "step": "read", "seconds": 1},
        {"page": "a", "step": "read", "seconds": 1, "failure": "no"},
        {"page": "a", "step": "read", "seconds": 1, "failure": {"kind": "died"}},
    ],
)
def test_a_line_that_is_no_result_is_passed_over(path: Path, told: dict[str, object]):
    whole = write(path, landed("b"))
    path.write_bytes(encode_line(told) + whole)
    assert pages(path) == ["b"]
    assert write(path) == whole


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.text(max_size=8)), max_size=12),
    st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 40), st.binary(max_size=30)), max_size=3
    ),
)
def test_whatever_is_damaged_the_missing_is_written_anew_and_the_rest_kept(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[tuple[str, str]],
    damages: list[tuple[int, int, bytes]],
):
    path = tmp_path_factory.mktemp("journal") / "out" / "results.jsonl"
    expected = dict(values)
    data = write(path, *[landed(page, value) for page, value in expected.items()])
    for at, length, other in damages:
        data = data[:at] + other + data[at + length :]
    path.write_bytes(data)
    untouched = pages(path)
    with Journal(path) as journal:
        assert [page for page in expected if journal.written(page, "read")] == untouched
        for page, value in expected.items():
            if not journal.written(page, "read"):
                journal.append(landed(page, value))
        assert {page: journal.value(page, "read") for page in expected} == expected
    with path.open("rb") as stream:
        entries = list(entries_of(stream))
    assert {each.page_id: each.value for each in entries} == expected
    assert sum(each.size for each in entries) == path.stat().st_size


def test_a_line_without_an_end_is_passed_over_and_not_held(tmp_path: Path):
    path = tmp_path / "long"
    path.write_bytes(b"x" * 5_000_000 + b"\nshort\n" + b"y" * 3_000_000)
    with path.open("rb") as stream:
        found = [(offset, len(line)) for offset, line in lines_of(stream, longest=1000)]
    assert found == [(0, 1001), (5_000_001, 6), (5_000_007, 1001)]


def test_a_full_disk_is_said_and_leaves_nothing_half_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(descriptor: int, data: memoryview) -> int:
        if len(data) <= 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_some(descriptor, data[:20])

    write_some = os.write
    whole = write(path, landed("a"))
    with Journal(path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(PlaceError, match=r"No space left on device. Make room there"):
                journal.append(landed("b"))
        assert path.read_bytes() == whole
        journal.append(landed("c"))
    assert pages(path) == ["a", "c"]
