"""Which continuations may leave the queue: their tasks have ended, or a slot is free."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import dagster as dg

from ..ledger.task_rows import TaskHead
from .adoption_desk import Desk
from .run_tags import (
    AWAIT,
    DEFERRING,
    ENDED,
    FOR_SLOT,
    OPEN,
    PLACE,
    SINCE,
    WAITING,
    YES,
)

__all__ = ["release"]


def release(desk: Desk) -> None:
    """Lets go whatever has no reason to wait any more; slots are given in order."""
    waiting = [
        record.dagster_run for record in desk.queued if record.dagster_run.tags[AWAIT] == OPEN
    ]
    released = 0
    for_slot: list[dg.DagsterRun] = []
    for run in waiting:
        tasks = desk.awaited_by(run)
        waited_for = desk.waited_for(tasks)
        if run.tags.get(WAITING) == FOR_SLOT and len(waited_for) == len(tasks):
            for_slot.append(run)
        elif (
            len(waited_for) == 0 or run.tags.get(WAITING) == FOR_SLOT or _some_can_land(desk, tasks)
        ):
            _let_go(desk, run)
            released += 1
    released += _give_slots(desk, for_slot)
    if released:
        desk.notes.append(f"{released} runs may go on")


def _some_can_land(desk: Desk, tasks: Iterable[TaskHead]) -> bool:
    """Whether a task of several ended so long ago that what has ended is to land by now."""
    now = datetime.now(UTC)
    return any(
        task.id in desk.ended
        and task.ended_at is not None
        and now - task.ended_at > desk.engine.land_every(task.place)
        for task in tasks
    )


def _give_slots(desk: Desk, runs: list[dg.DagsterRun]) -> int:
    free: dict[str, int] = {}
    given = 0
    for run in sorted(runs, key=lambda run: run.tags.get(SINCE, "")):
        place = run.tags.get(PLACE, "")
        if place not in free:
            free[place] = _free_slots(desk, place)
        if free[place] > 0:
            _let_go(desk, run)
            free[place] -= 1
            given += 1
    return given


def _free_slots(desk: Desk, place: str) -> int:
    """The place's free slots without those that are already promised; none while it is paused."""
    if desk.engine.paused(place) is not None:
        return 0
    slots = desk.engine.slots(place)
    if slots is None:
        return len(desk.queued)
    return slots - sum(1 for _ in _promised(desk, place))


def _promised(desk: Desk, place: str) -> Iterable[dg.DagsterRun]:
    """Runs that were let go because of a slot and have not taken it yet."""
    for record in (*desk.queued, *desk.active):
        run = record.dagster_run
        if (
            run.tags.get(AWAIT) == ENDED
            and run.tags.get(WAITING) == FOR_SLOT
            and run.tags.get(PLACE) == place
            and run.tags.get(DEFERRING) != YES
            and not desk.tasks_of(desk.works.of(run))
        ):
            yield run


def _let_go(desk: Desk, run: dg.DagsterRun) -> None:
    desk.instance.add_run_tags(run.run_id, {AWAIT: ENDED})
