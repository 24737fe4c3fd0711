"""The table of docs/control.md: what each decision does in every state of a task."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import Seen
from recipes_orchestration.engine.by_hand import give_value, retry, set_aside
from recipes_orchestration.engine.controls import hurry, pause, resume, scope_of, stop
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.engine.stopping import stop_tasks
from recipes_orchestration.errors import HeldBack
from recipes_orchestration.ledger.holds import Failure
from recipes_orchestration.ledger.tasks import TaskState
from recipes_orchestration.recipe import page_key
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import BATCH, advance_once
from .cloud_landing import cloud, direct, rows_of, send_batch, sizes

pytestmark = pytest.mark.usefixtures("restored_path")

# A provider that can be asked for a batch by its name while it runs.
PLACE = "openai"
PAGES = 5
HELD = "a/0004.png"
STATES = ("none", "preparing", "submitted", "cancelling", "ended", "landed")


@dataclass(frozen=True)
class End:
    """What it comes to: requests of each batch, plain calls, landed pages, and who holds back."""

    batches: list[int]
    plain: int
    landed: int
    by: str = ""


# Five pages. A batch that is cancelled has answered two of them.
PAUSE = {
    "none": End([], 0, 0, "paused"),
    "preparing": End([5], 0, 5),
    "submitted": End([5], 0, 5),
    "cancelling": End([5], 0, 2, "paused"),
    "ended": End([5], 0, 5),
    "landed": End([5], 0, 5),
}
STOP = {
    "none": End([], 0, 0, "stopped"),
    "preparing": End([5], 0, 2, "stopped"),
    "submitted": End([5], 0, 2, "stopped"),
    "cancelling": End([5], 0, 2, "stopped"),
    "ended": End([5], 0, 5),
    "landed": End([5], 0, 5),
}
RESUME = {
    "none": End([5], 0, 5),
    "preparing": End([5, 3], 0, 5),
    "submitted": End([5, 3], 0, 5),
    "cancelling": End([5, 3], 0, 5),
    "ended": End([5], 0, 5),
    "landed": End([5], 0, 5),
}
NOW = {
    "none": End([], 5, 5),
    "preparing": End([5], 3, 5),
    "submitted": End([5], 3, 5),
    "cancelling": End([5], 3, 5),
    "ended": End([5], 0, 5),
    "landed": End([5], 0, 5, "refused"),
}
# One of the five pages is held from before, so that a task has the four others.
RETRY = {
    "none": End([5], 0, 5),
    "preparing": End([4, 1], 0, 5),
    "submitted": End([4, 1], 0, 5),
    "cancelling": End([4, 1, 2], 0, 5),
    "ended": End([4, 1], 0, 5),
    "landed": End([4, 1], 0, 5),
}
RELEASE = {
    "none": End([4], 0, 4),
    "preparing": End([4], 0, 4),
    "submitted": End([4], 0, 4),
    "cancelling": End([4, 2], 0, 4),
    "ended": End([4], 0, 4),
    "landed": End([4], 0, 4),
}
BY_HAND = {state: End(end.batches, 0, 5) for state, end in RELEASE.items()}


def do_pause(engine: Engine) -> None:
    pause(engine, scope_of(engine, "letters"), "a reason", "Ada")


def do_stop(engine: Engine) -> None:
    stop(engine, scope_of(engine, "letters"), "a reason", "Ada")


def do_resume(engine: Engine) -> None:
    """Of a stop that was asked for a moment ago."""
    do_stop(engine)
    resume(engine, scope_of(engine, "letters"))


def do_now(engine: Engine) -> None:
    hurry(engine, scope_of(engine, "letters"), "a reason", "Ada")


def do_retry(engine: Engine) -> None:
    recipe = engine.project.recipe("letters")
    retry(engine, recipe, engine.ledger.pages.batches("letters"), whole=True)


def do_release(engine: Engine) -> None:
    set_aside(engine, engine.project.recipe("letters"), HELD, None, "blank", "Ada")


def do_by_hand(engine: Engine) -> None:
    recipe = engine.project.recipe("letters")
    give_value(engine, recipe, HELD, None, {"text": "Dear"}, "seen with my eyes", "Ada")


DECISIONS: dict[str, tuple[Callable[[Engine], None], dict[str, End]]] = {
    "pause": (do_pause, PAUSE),
    "stop": (do_stop, STOP),
    "resume": (do_resume, RESUME),
    "now": (do_now, NOW),
    "retry": (do_retry, RETRY),
    "release": (do_release, RELEASE),
    "by hand": (do_by_hand, BY_HAND),
}


def hold_page(engine: Engine) -> None:
    """The page has failed so often that it waits for a person."""
    recipe = engine.project.recipe("letters")
    ((_, page),) = engine.ledger.pages.find(HELD)
    key = page_key(recipe.fingerprint("read"), page.sha256)
    where = ("letters", "read", "letters", BATCH, HELD, key)
    engine.ledger.holds.failed_many([Failure(*where, "errored", "too blurred", hold=True)])


def come_to(engine: Engine, rehearsal: Rehearsal, state: str) -> None:
    """Brings the batch's task into the state."""
    if state == "none":
        return
    if state == "preparing":
        direct(rehearsal, PLACE, **RUNS_ON, lose_reply=1)
    task = send_batch(engine)
    if state == "preparing":
        assert (task.state, task.remote_id) == (TaskState.preparing, None)
    elif state == "cancelling":
        assert stop_tasks(engine, [task]) == []
    elif state in ("ended", "landed"):
        rehearsal.finish(PLACE)
        assert poll_open(engine)[task.id].ended
    if state == "landed":
        assert advance_once(engine).landed > 0


RUNS_ON = {"never_ends": True, "answered_before_cancel": 2, "cancel_seconds": 0.3}


def settle(engine: Engine, rehearsal: Rehearsal) -> Seen:
    """Advances until nothing goes on; the provider ends whatever nobody wants to end sooner."""
    until = time.monotonic() + 30
    while True:
        seen = advance_once(engine)
        if seen.at_rest or (seen.person and not seen.open):
            return seen
        assert time.monotonic() < until, f"it does not come to rest: {seen}"
        if not any(task.stopped for task in engine.ledger.tasks.open()):
            rehearsal.finish(PLACE)
        time.sleep(0.05)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_in_a_state_of_the_task(
    tmp_path: Path, rehearsal: Rehearsal, decision: str, state: str
) -> None:
    decide, ends = DECISIONS[decision]
    direct(rehearsal, PLACE, **RUNS_ON)
    with cloud(tmp_path, rehearsal, PLACE, PAGES).engine() as engine:
        if decision in ("retry", "release", "by hand"):
            hold_page(engine)
        come_to(engine, rehearsal, state)
        by = ends[state].by if ends[state].by == "refused" else ""
        if by:
            with pytest.raises(HeldBack, match="Nothing of letters waits: 5 of 5 pages have"):
                decide(engine)
        else:
            decide(engine)
        seen = settle(engine, rehearsal)
        if seen.person:
            by = "stopped" if seen.stopped else "paused"
            assert seen.waiting is not None
            assert "by Ada" in seen.waiting
            assert "a reason" in seen.waiting
            assert "recipes resume letters" in seen.waiting
        plain = rehearsal.counts(PLACE)["plain"]
        assert End(sizes(rehearsal, PLACE), plain, len(rows_of(engine)), by) == ends[state]
        assert engine.ledger.tasks.open() == []
        step = look(engine, engine.project.recipe("letters"), BATCH).steps["read"]
        assert step.complete(max_held=0.0) == (not seen.person)
        assert [held.page_id for held in step.held] == ([HELD] if decision == "release" else [])
        if decision == "by hand":
            row = next(row for row in rows_of(engine) if row["page_id"] == HELD)
            assert (row["model"], row["note"]) == ("by hand", "Ada: seen with my eyes")
        assert len(engine.ledger.bookings.all()) == len(ends[state].batches) + (plain > 0)


def test_a_batch_that_can_only_be_known_by_its_answers_lands_after_a_stop(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    """Anthropic keeps no name: a batch whose id was lost cannot be ended, and is found ended."""
    direct(rehearsal, "anthropic", never_ends=True, lose_reply=1)
    with cloud(tmp_path, rehearsal, "anthropic", PAGES).engine() as engine:
        send_batch(engine)
        do_stop(engine)
        assert advance_once(engine).open == 1
        rehearsal.finish("anthropic")
        assert advance_once(engine).landed == PAGES
        assert sizes(rehearsal, "anthropic") == [PAGES]


def test_a_task_that_never_came_to_its_place_is_not_sent_after_a_stop(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, PLACE, **RUNS_ON, create_status=[500] * 20)
    with cloud(tmp_path, rehearsal, PLACE, PAGES).engine() as engine:
        send_batch(engine)
        do_stop(engine)
        seen = advance_once(engine)
        assert (seen.stopped, engine.ledger.tasks.open()) == (True, [])
        assert sizes(rehearsal, PLACE) == []
