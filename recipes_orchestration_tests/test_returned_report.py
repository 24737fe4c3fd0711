"""What the far side told of its work: facts and messages, bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recipes_orchestration.places.place import Message, Report
from recipes_orchestration.runner.progress import Progress

from .returned_folders import outcome_of, outcomes, returned


def report_of(tmp_path: Path, outcome: dict[str, Any] | None = None) -> Report:
    given = returned(tmp_path, b"", outcome)
    outcomes(given)
    return given.report()


def test_facts_are_those_of_the_outcome(tmp_path: Path):
    told = outcome_of(b"")
    facts = report_of(tmp_path, told).facts
    for name in ("steps", "peak_memory_mb", "versions", "restarts"):
        assert facts[name] == told[name]
    assert "pages" not in facts


def test_without_an_outcome_there_are_no_facts(tmp_path: Path):
    assert report_of(tmp_path) == Report({}, ())


def test_messages_are_those_that_the_runner_wrote(tmp_path: Path):
    (tmp_path / "out").mkdir()
    progress = Progress(tmp_path / "out" / "progress.jsonl", "task")
    progress.say("lines: model loaded", step="lines")
    progress.warn("lines: p1: no ink")
    progress.close("the disk is full")
    assert report_of(tmp_path).messages == (
        Message("info", "lines: model loaded"),
        Message("warning", "lines: p1: no ink"),
        Message("error", "the disk is full"),
    )


def log_line(words: Any, level: Any = "INFO") -> bytes:
    message = {"method": "log", "params": {"message": words, "level": level}}
    return json.dumps(message).encode() + b"\n"


def test_only_the_last_messages_are_kept(tmp_path: Path):
    (tmp_path / "out").mkdir()
    lines = [log_line(f"message {number}") for number in range(1000)]
    (tmp_path / "out" / "progress.jsonl").write_bytes(b"".join(lines))
    messages = report_of(tmp_path).messages
    assert len(messages) == 200
    assert messages[0].words == "801 earlier messages are left out."
    assert (messages[1].words, messages[-1].words) == ("message 801", "message 999")


def test_what_is_no_message_is_passed_over(tmp_path: Path):
    (tmp_path / "out").mkdir()
    lines = [
        b"\xff\n",
        b"[]\n",
        log_line(7),
        log_line("no level", None),
        json.dumps({"method": "report_asset_materialization", "params": {}}).encode() + b"\n",
        log_line("x" * 100_000),
        log_line("\x1b[31mred\n" + "y" * 5000, "CRITICAL"),
        log_line("cut off")[:-5],
    ]
    (tmp_path / "out" / "progress.jsonl").write_bytes(b"".join(lines))
    (only,) = report_of(tmp_path).messages
    assert only.level == "error"
    assert only.words.startswith("[31mred yyy")
    assert len(only.words) <= 2000
