"""A far side that lies: nothing lands that was not asked for, and nothing outside is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.places.task_folders import returned_lines
from recipes_orchestration.places.task_folders.returned import Expected, read_returned
from recipes_orchestration.places.task_folders.returned_lines import MOST_VALUE_BYTES
from recipes_orchestration.runner.task_folder import encode_line
from recipes_orchestration.runner.work import FailureKind

from .returned_folders import (
    EXPECTED,
    TASK,
    failure_line,
    outcome_of,
    outcomes,
    returned,
    value_line,
)

GOOD = value_line("p1", "lines", 1)
ENTRY: dict[str, Any] = {"page": "p1", "step": "lines", "seconds": 1.0, "value": 1}


def framed(text: bytes) -> bytes:
    """A line with a right checksum, whatever its text."""
    import zlib

    return b"%08x %s\n" % (zlib.crc32(text), text)


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        pytest.param(GOOD[:-3], "torn", id="cut off"),
        pytest.param(b"\n", "torn", id="empty"),
        pytest.param(b"\xff\xfe garbage\n", "torn", id="garbage"),
        pytest.param(b"0" * 8 + GOOD[8:], "torn", id="another checksum"),
        pytest.param(GOOD.replace(b" ", b"_", 1), "torn", id="no space"),
        pytest.param(framed(b"{"), "torn", id="no JSON"),
        pytest.param(framed(b"[]"), "torn", id="no object"),
        pytest.param(framed(b'{"page":"\xff"}'), "torn", id="no UTF-8"),
        pytest.param(framed(b"[" * 100_000), "torn", id="deep"),
        pytest.param(encode_line({**ENTRY, "page": 7}), "strange", id="page of a wrong type"),
        pytest.param(encode_line({**ENTRY, "step": None}), "strange", id="no step"),
        pytest.param(
            encode_line({**ENTRY, "seconds": True}), "strange", id="seconds are no number"
        ),
        pytest.param(encode_line({**ENTRY, "seconds": -1}), "strange", id="seconds below zero"),
        pytest.param(encode_line({**ENTRY, "seconds": 1e300}), "strange", id="endless seconds"),
        pytest.param(
            framed(b'{"page":"p1","step":"lines","seconds":NaN,"value":1}'), "torn", id="NaN"
        ),
        pytest.param(
            framed(b'{"page":"p1","step":"lines","seconds":1,"value":[{"a":-1e999}]}'),
            "strange",
            id="infinity",
        ),
        pytest.param(
            framed(b'{"page":"p1","step":"lines","seconds":1,"value":"\\ud800"}'),
            "strange",
            id="half a character",
        ),
        pytest.param(
            encode_line({**ENTRY, "failure": {"kind": "failed", "words": ""}}),
            "strange",
            id="value and failure",
        ),
        pytest.param(
            encode_line({"page": "p1", "step": "lines", "seconds": 1, "failure": "bad"}),
            "strange",
            id="failure of a wrong type",
        ),
        pytest.param(value_line("p9", "lines"), "unknown", id="a page never sent"),
        pytest.param(value_line("../p1", "lines"), "unknown", id="a path that leaves"),
        pytest.param(value_line("p3", "lines"), "unknown", id="a step not sent for the page"),
        pytest.param(value_line("p1", "names"), "unknown", id="a step never sent"),
    ],
)
def test_what_is_no_result_is_counted_and_left_out(tmp_path: Path, line: bytes, counted: str):
    given = returned(tmp_path, [value_line("p2", "lines", 2), line])
    assert [each.page_id for each in outcomes(given)] == ["p2"]
    assert getattr(given.left_out, counted) == 1


def test_lines_behind_a_damaged_one_are_read(tmp_path: Path):
    given = returned(tmp_path, [GOOD[5:], GOOD, b"\0" * 5000 + b"\n", value_line("p2", "lines")])
    assert len(outcomes(given)) == 2
    assert given.left_out.torn == 2


def test_the_first_of_two_results_counts(tmp_path: Path):
    given = returned(tmp_path, [GOOD, value_line("p1", "lines", 2), failure_line("p1", "lines")])
    assert [each.value for each in outcomes(given)] == [1]
    assert given.left_out.twice == 2


def test_a_value_that_the_library_does_not_take_is_left_out(tmp_path: Path):
    large = value_line("p1", "lines", "x" * (MOST_VALUE_BYTES - 1))
    given = returned(tmp_path, [large, value_line("p2", "lines", "x" * (MOST_VALUE_BYTES - 2))])
    assert [each.page_id for each in outcomes(given)] == ["p2"]
    assert given.left_out.too_large == 1


def test_a_line_without_end_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recipes_orchestration.places.task_folders.returned.MAX_LINE_BYTES", 1000)
    given = returned(tmp_path, [b"x" * 5000 + b"\n", GOOD])
    assert len(outcomes(given)) == 1
    assert given.left_out.too_large == 1


@pytest.mark.parametrize("kind", sorted({*FailureKind, FailureKind.FAILED} | {"anything"}))
def test_a_far_side_cannot_pause_a_place_or_give_uncounted_failures(tmp_path: Path, kind: str):
    (only,) = outcomes(returned(tmp_path, [failure_line("p1", "lines", kind)]))
    assert only.failure is not None
    own = {"unreadable", "source", "failed", "died", "memory", "timeout"}
    assert only.failure.kind.value == (kind if kind in own else "failed")


def test_words_are_bounded_and_harmless(tmp_path: Path):
    words = "\x1b[2J\u202e" + "long \n" * 5000
    (only,) = outcomes(returned(tmp_path, [failure_line("p1", "lines", words=words)]))
    assert only.failure is not None
    assert len(only.failure.words) <= 2000
    assert only.failure.words.startswith("[2J long long")


@pytest.mark.parametrize(
    "outcome",
    [
        b"",
        b"{}",
        b"[1]",
        b"\xff",
        b"[" * 100_000,
        json.dumps(outcome_of(GOOD, format=2)).encode(),
        json.dumps(outcome_of(GOOD, task="another")).encode(),
        json.dumps(outcome_of(GOOD, complete="yes")).encode(),
        json.dumps(outcome_of(GOOD, results={"lines": -1})).encode(),
        json.dumps(outcome_of(GOOD, steps=[{"name": 1}])).encode(),
        json.dumps(outcome_of(GOOD, peak_memory_mb="much")).encode(),
    ],
    ids=range(11),
)
def test_an_outcome_that_is_not_right_is_none(tmp_path: Path, outcome: bytes):
    given = returned(tmp_path, GOOD, outcome)
    assert (given.complete, given.has_outcome, len(outcomes(given))) == (False, False, 1)
    assert given.left_out.outcome == 1


def test_files_that_nobody_asked_for_are_counted_and_not_opened(tmp_path: Path):
    given = returned(tmp_path, GOOD)
    assert given.left_out.files == 0
    (tmp_path / "out" / "more.jsonl").write_bytes(GOOD)
    (tmp_path / "out" / "folder").mkdir()
    os.mkfifo(tmp_path / "out" / "progress.jsonl")
    given = read_returned(tmp_path / "out", EXPECTED)
    assert (len(outcomes(given)), given.left_out.files) == (1, 3)
    assert given.report().messages[-1].words == (
        "Not taken from what came back: files that were not asked for (3)."
    )


def test_a_file_that_the_place_asked_for_is_not_counted(tmp_path: Path):
    returned(tmp_path, GOOD)
    (tmp_path / "out" / "ended.json").write_bytes(b"{}")
    assert read_returned(tmp_path / "out", EXPECTED, also=["ended.json"]).left_out.files == 0


@pytest.mark.parametrize("name", ["results.jsonl", "outcome.json", "progress.jsonl"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_links_pipes_and_folders_in_place_of_files_are_nothing(
    tmp_path: Path, name: str, kind: str
):
    results = b"" if name == "results.jsonl" else GOOD
    returned(tmp_path, GOOD, outcome_of(results, complete=False))
    path = tmp_path / "out" / name
    (tmp_path / "secret").write_bytes(path.read_bytes() if path.exists() else b"")
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(tmp_path / "secret")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    given = read_returned(tmp_path / "out", EXPECTED)
    assert len(outcomes(given)) == (0 if name == "results.jsonl" else 1)
    assert given.has_outcome == (name != "outcome.json")
    assert given.report().messages != ()
    assert given.left_out.files == 1


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path):
    returned(tmp_path, GOOD)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    given = read_returned(tmp_path / "link", EXPECTED)
    assert (outcomes(given), given.left_out.files) == ([], 1)


def test_a_folder_with_very_many_files_is_looked_at_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("recipes_orchestration.places.task_folders.returned._MOST_FILES", 5)
    returned(tmp_path, GOOD)
    for number in range(20):
        (tmp_path / "out" / f"{number}").write_bytes(b"")
    assert read_returned(tmp_path / "out", EXPECTED).left_out.files <= 5


def test_what_was_left_out_is_said_in_words():
    left_out = returned_lines.LeftOut(torn=2, too_large=1, outcome=1)
    assert left_out.words() == (
        "damaged lines (2), values of more than 32,000,000 bytes (1), "
        "an outcome that cannot be read"
    )
    assert returned_lines.LeftOut().words() == ""


def test_no_page_expected_means_nothing_lands(tmp_path: Path):
    given = returned(tmp_path, GOOD, expected=Expected(TASK, {}))
    assert outcomes(given) == []
