"""Results that came back: what lands, what failed, what was never written."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from recipes_orchestration.errors import ProviderError
from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.places.task_folders import returned as module
from recipes_orchestration.places.task_folders.returned import Expected, read_returned
from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.work import Failure, FailureKind, PageWork, TaskSpec

from .returned_folders import (
    EXPECTED,
    TASK,
    failure_line,
    outcome_of,
    outcomes,
    returned,
    value_line,
)

LOST = Failure(FailureKind.NODE, "its node failed")


def test_values_and_failures_come_as_outcomes(tmp_path: Path):
    lines = [
        value_line("p1", "lines", {"text": "a\u2028b é 😀"}),
        failure_line("p2", "lines", "unreadable"),
    ]
    first, second = outcomes(returned(tmp_path, lines))
    assert (first.page_id, first.step, first.seconds) == ("p1", "lines", 1.5)
    assert first.value == {"text": "a\u2028b é 😀"}
    assert second.failure == Failure(FailureKind.UNREADABLE, "no ink")


@pytest.mark.parametrize("value", ["Infinity", {"Infinity": 1.5}, 10**30, [1e308, -0.0]])
def test_values_that_look_odd_are_values(tmp_path: Path, value: object):
    (only,) = outcomes(returned(tmp_path, [value_line("p1", "lines", value)]))
    assert only.value == value


def test_a_value_may_be_nested_as_deep_as_the_library_takes_it(tmp_path: Path):
    value: object = 1
    for _ in range(400):
        value = [value]
    (only,) = outcomes(returned(tmp_path, [value_line("p1", "lines", value)]))
    assert only.value == value


def test_a_value_may_be_null(tmp_path: Path):
    (only,) = outcomes(returned(tmp_path, [value_line("p1", "lines", None)]))
    assert (only.value, only.failure) == (None, None)


def test_what_was_not_written_fails_where_it_could_have_run(tmp_path: Path):
    lines = [value_line("p1", "lines", 1), failure_line("p2", "lines")]
    given = returned(tmp_path, lines)
    outcomes(given)
    left = [each for chunk in given.unwritten(LOST) for each in chunk]
    # p2's `read` waits for its lines; those of p3 had landed before.
    assert [(each.page_id, each.step) for each in left] == [("p1", "read"), ("p3", "read")]
    assert {each.failure for each in left} == {LOST}


def test_a_step_behind_one_that_was_not_written_is_left_to_do(tmp_path: Path):
    given = returned(tmp_path, b"")
    outcomes(given)
    left = [each for chunk in given.unwritten(LOST) for each in chunk]
    assert [(each.page_id, each.step) for each in left] == [
        ("p1", "lines"),
        ("p2", "lines"),
        ("p3", "read"),
    ]


def test_a_folder_that_never_came_has_nothing_written(tmp_path: Path):
    given = read_returned(tmp_path / "out", EXPECTED)
    assert (outcomes(given), given.complete, given.has_outcome) == ([], False, False)
    assert len([each for chunk in given.unwritten(LOST) for each in chunk]) == 3


def test_a_complete_outcome_is_known_as_one(tmp_path: Path):
    results = value_line("p1", "lines", 1)
    given = returned(tmp_path, results, outcome_of(results))
    assert (given.complete, given.failure, given.has_outcome) == (True, None, True)


def test_a_task_that_could_not_be_done_says_why(tmp_path: Path):
    told = outcome_of(b"", complete=False, failure="rapidocr is\nnot installed")
    given = returned(tmp_path, b"", told)
    assert (given.complete, given.failure) == (False, "rapidocr is not installed")


@pytest.mark.parametrize(
    "came",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(value_line("p1", "lines", 1), id="a line too few"),
        pytest.param(
            value_line("p1", "lines", 1) + value_line("p1", "read", 3), id="another value"
        ),
        pytest.param(
            value_line("p1", "lines", 1) + value_line("p1", "read", 2) * 2, id="a line too many"
        ),
    ],
)
def test_results_that_lost_something_on_the_way_are_fetched_again(tmp_path: Path, came: bytes):
    results = value_line("p1", "lines", 1) + value_line("p1", "read", 2)
    with pytest.raises(ProviderError, match="fetched again"):
        returned(tmp_path, came, outcome_of(results))


def test_results_that_did_not_come_at_all_are_fetched_again(tmp_path: Path):
    results = value_line("p1", "lines", 1)
    returned(tmp_path, results, outcome_of(results))
    (tmp_path / "out" / "results.jsonl").unlink()
    with pytest.raises(ProviderError, match="0 lines of 0 bytes came back"):
        read_returned(tmp_path / "out", EXPECTED)


def test_an_outcome_that_is_not_complete_lets_more_lines_be(tmp_path: Path):
    results = value_line("p1", "lines", 1)
    told = outcome_of(b"", complete=False)
    assert len(outcomes(returned(tmp_path, results, told))) == 1


def test_chunks_are_of_some_hundred_outcomes(tmp_path: Path):
    pages = {f"p{number}": ("lines",) for number in range(1000)}
    lines = [value_line(page, "lines", 1) for page in pages]
    given = returned(tmp_path, lines, expected=Expected(TASK, pages))
    assert [len(chunk) for chunk in given.chunks()] == [400, 400, 200]
    assert [len(chunk) for chunk in given.chunks()] == [400, 400, 200]


def test_chunks_are_of_some_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 2500)
    lines = [value_line(page, "lines", "x" * 1000) for page in ("p1", "p2")]
    lines += [value_line("p1", "read", "x" * 5000), value_line("p2", "read", 1)]
    assert [len(chunk) for chunk in returned(tmp_path, lines).chunks()] == [2, 1, 1]


def test_memory_is_that_of_a_chunk(tmp_path: Path):
    pages = {f"p{number}": ("lines",) for number in range(1000)}
    with (tmp_path / "results.jsonl").open("wb") as stream:
        for page in pages:
            stream.write(value_line(page, "lines", "x" * 300_000))
    given = read_returned(tmp_path, Expected(TASK, pages))
    tracemalloc.start()
    assert sum(len(chunk) for chunk in given.chunks()) == 1000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80_000_000


def test_what_is_expected_is_read_off_the_work():
    steps = (Step("lines", "lines", "1"), Step("read", "read", "1", needs=("lines",)))
    pages = (PageWork("p1", "0" * 64, "p1", None, ("lines", "read")),)
    spec = TaskSpec(steps, pages, SourceReader("/nowhere"), "/nowhere")
    assert Expected.of_spec(TASK, spec) == Expected(
        TASK, {"p1": ("lines", "read")}, {"lines": (), "read": ("lines",)}
    )
