"""How a task stands, by what the queue, its own files and the accounts say. Pure."""

from __future__ import annotations

import base64

import pytest

from recipes_orchestration.places.place import State
from recipes_orchestration.places.slurm.commands import Traces, traces_of
from recipes_orchestration.places.slurm.queue import Row
from recipes_orchestration.places.slurm.script import Mark, mark_of
from recipes_orchestration.places.slurm.verdicts import left_queue, verdict
from recipes_orchestration.runner.work import FailureKind

BEGAN = Traces(started=True)
LONG = 1000


def row(state: str, reason: str = "None") -> Row:
    return Row("width-a", state, reason)


def ended(code: int, why: str = "-", **more: object) -> Traces:
    return Traces(exit=Mark(15, code, 1, 2, why, "node1"), started=True, **more)  # pyright: ignore


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "NEW_WORD"])
def test_the_queue_is_believed_first(state: str):
    assert not left_queue(row(state))
    assert verdict(row(state), ended(0), row("FAILED")).state is State.RUNNING


def test_a_task_that_ends_has_ended_when_its_exit_file_is_there():
    assert left_queue(row("COMPLETING"))
    assert verdict(row("COMPLETING"), BEGAN).state is State.RUNNING
    assert verdict(row("COMPLETING"), ended(0)).state is State.ENDED


@pytest.mark.parametrize("code", [137, 143, 130])
def test_why_a_task_was_killed_is_for_slurm_to_say(code: int):
    assert verdict(row("COMPLETING"), ended(code, "term")).state is State.RUNNING
    assert verdict(row("CANCELLED"), ended(code, "term")).state is State.ENDED


@pytest.mark.parametrize(
    ("queue", "traces", "accounts", "kind"),
    [
        (row("COMPLETED"), ended(0), None, FailureKind.MISSING),
        (row("TIMEOUT"), ended(143, "term"), None, FailureKind.EXPIRED),
        (None, ended(143, "time"), None, FailureKind.EXPIRED),
        (None, ended(143, "term"), row("TIMEOUT"), FailureKind.EXPIRED),
        (row("DEADLINE"), ended(143, "term"), None, FailureKind.EXPIRED),
        (row("OUT_OF_MEMORY"), Traces(started=True, absent=LONG), None, FailureKind.MEMORY),
        (row("FAILED"), ended(137), None, FailureKind.MEMORY),
        (row("FAILED"), ended(1, log="Detected 1 oom-kill event(s)"), None, FailureKind.MEMORY),
        (row("NODE_FAIL"), Traces(started=True, absent=LONG), None, FailureKind.NODE),
        (row("PREEMPTED"), ended(143, "term"), None, FailureKind.NODE),
        (None, ended(143, "term"), row("PREEMPTED"), FailureKind.NODE),
        (row("BOOT_FAIL"), Traces(), None, FailureKind.NODE),
        (row("CANCELLED"), ended(143, "term"), None, FailureKind.CANCELLED),
        (row("CANCELLED"), Traces(), None, FailureKind.CANCELLED),
        (None, Traces(cancelled=True), None, FailureKind.CANCELLED),
        (None, ended(143, "term"), None, FailureKind.NODE),
        (None, ended(143), None, FailureKind.NODE),
        (row("FAILED"), ended(75), None, FailureKind.NODE),
        (row("FAILED"), ended(1, results=True), None, FailureKind.DIED),
        (row("FAILED"), Traces(started=True, absent=LONG), None, FailureKind.NODE),
        (None, Traces(started=True, absent=LONG), None, FailureKind.NODE),
        (None, Traces(absent=LONG), None, FailureKind.CANCELLED),
        (None, Traces(started=True, absent=LONG), row("RUNNING"), FailureKind.NODE),
        (None, Traces(folder=False, absent=LONG), None, FailureKind.NODE),
    ],
)
def test_pages_that_were_not_written_say_why(
    queue: Row | None, traces: Traces, accounts: Row | None, kind: FailureKind
):
    told = verdict(queue, traces, accounts)
    assert (told.state, told.kind) == (State.ENDED, kind)
    assert told.words


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        (ended(3, results=True, log="no weights"), "cannot do it. Its log ends with: no weights"),
        (ended(127, results=True), "The runner was not found there; it left no log."),
        (ended(120), "A module could not be loaded"),
        (ended(1, log="Traceback"), "ended with code 1 before it wrote anything. Its log ends"),
        (Traces(absent=LONG), "Slurm could not start it: Slurm says failed"),
    ],
)
def test_a_task_that_failed_by_itself_blames_no_page(traces: Traces, words: str):
    told = verdict(row("FAILED"), traces)
    assert told.state is State.FAILED
    assert words in told.words


@pytest.mark.parametrize(
    ("queue", "accounts", "seconds"),
    [
        (None, None, 10),
        (None, row("RUNNING"), 300),
        (row("COMPLETED"), None, 5),
        (row("NODE_FAIL"), None, 5),
    ],
)
def test_what_left_without_a_word_is_looked_at_again(
    queue: Row | None, accounts: Row | None, seconds: int
):
    early = verdict(queue, Traces(started=True, absent=seconds - 1), accounts, 5)
    assert early.state is State.RUNNING
    assert "looked at again in 1 s" in early.words
    late = verdict(queue, Traces(started=True, absent=seconds), accounts, 5)
    assert late.state is State.ENDED


def test_a_mark_is_one_whole_line():
    assert mark_of("1 15 143 100 200 term node1") == Mark(15, 143, 100, 200, "term", "node1")
    assert mark_of("1 15 - 100 100 - node1") == Mark(15, None, 100, 100, "-", "node1")
    for damaged in (
        "",
        "1 15 143 100 200 term",
        "2 15 0 1 2 - a",
        "1 x 0 1 2 - a",
        "1 5 0 1 2 z a",
    ):
        assert mark_of(damaged) is None


def test_traces_of_another_job_in_the_same_folder_are_not_believed():
    log = base64.b64encode("Grüße".encode()).decode()
    text = (
        f"0|1 15 0 1 2 - n|1 15 - 1 1 - n|15|1|1|0|{log}\n"
        "1|1 14 0 1 2 - n|1 14 - 1 1 - n|14|0|1|7|\n"
        "2|torn\n"
        "9|1 15 0 1 2 - n||||||\n"
    )
    first, second, third = traces_of(text, [15, 15, 15])
    assert first == Traces(
        exit=Mark(15, 0, 1, 2, "-", "n"), started=True, cancelled=True, results=True, log="Grüße"
    )
    assert second == Traces(absent=7)
    assert third == Traces()
