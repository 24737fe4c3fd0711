"""The table of docs/control.md: what each decision does in every state of a task."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import Seen
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.engine.stopping import stop_tasks
from recipes_orchestration.errors import HeldBack
from recipes_orchestration.ledger.tasks import TaskState
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import BATCH, advance_once
from .cloud_landing import cloud, direct, rows_of, send_batch, sizes
from .control_decisions import DECIDE, ON_HELD, do_stop, hold_page
from .control_table import CLOUD, LABELS, STATES, TABLE, End

pytestmark = pytest.mark.usefixtures("restored_path")

# A provider that can be asked for a batch by its name while it runs.
PLACE = "openai"
PAGES = 5
HELD = "a/0004.png"
DOCS = Path(__file__).parent.parent / "docs" / "control.md"


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


def test_the_docs_have_the_table_that_is_tested() -> None:
    _, _, table = DOCS.read_text().partition(f"\n| | {' | '.join(STATES.values())} |\n")
    _, *lines = table.partition("\n\n")[0].split("\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows == [
        [LABELS[name], *(row[state].words for state in STATES)] for name, row in TABLE.items()
    ]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("decision", CLOUD)
def test_a_decision_in_a_state_of_the_task(
    tmp_path: Path, rehearsal: Rehearsal, decision: str, state: str
) -> None:
    end = CLOUD[decision][state].end
    direct(rehearsal, PLACE, **RUNS_ON)
    with cloud(tmp_path, rehearsal, PLACE, PAGES).engine() as engine:
        if decision in ON_HELD:
            hold_page(engine, BATCH, HELD)
        come_to(engine, rehearsal, state)
        by = end.by if end.by == "refused" else ""
        if by:
            with pytest.raises(HeldBack, match="Nothing of letters waits: 5 of 5 pages have"):
                DECIDE[decision](engine, "", HELD)
        else:
            DECIDE[decision](engine, "", HELD)
        seen = settle(engine, rehearsal)
        if seen.person:
            by = "stopped" if seen.stopped else "paused"
            assert seen.waiting is not None
            assert "by Ada" in seen.waiting
            assert "a reason" in seen.waiting
            assert "recipes resume letters" in seen.waiting
        plain = rehearsal.counts(PLACE)["plain"]
        assert End(sizes(rehearsal, PLACE), plain, len(rows_of(engine)), by) == end
        assert engine.ledger.tasks.open() == []
        step = look(engine, engine.project.recipe("letters"), BATCH).steps["read"]
        assert step.complete(max_held=0.0) == (not seen.person)
        assert [held.page_id for held in step.held] == ([HELD] if decision == "release" else [])
        if decision == "by hand":
            row = next(row for row in rows_of(engine) if row["page_id"] == HELD)
            assert (row["model"], row["note"]) == ("by hand", "Ada: seen with my eyes")
        assert len(engine.ledger.bookings.all()) == len(end.tasks) + (plain > 0)


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
