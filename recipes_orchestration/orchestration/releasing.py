"""Which continuations may leave the queue: tasks ended, a slot is free, a person resumed it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

import dagster as dg

from ..engine.spending import over_cap
from ..ledger.controls import ControlKind
from ..ledger.task_rows import TaskHead
from .adoption_desk import Desk
from .run_tags import (
    AWAIT,
    CAP_USD,
    DEFERRING,
    ENDED,
    FOR_PERSON,
    FOR_SLOT,
    OPEN,
    PLACE,
    SINCE,
    TASK,
    WAITING,
    YES,
    shown_ids,
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
        _show_ids(desk, run, tasks)
        waited_for = desk.waited_for(tasks)
        why = run.tags.get(WAITING)
        none_ended = len(waited_for) == len(tasks)
        decided = desk.controls_of(run) if why in (FOR_SLOT, FOR_PERSON) else set[ControlKind]()
        if _needs_no_slot(decided) and not waited_for:
            _let_go(desk, run)
            released += 1
        elif why == FOR_PERSON and none_ended:
            if ControlKind.PAUSE not in decided:
                _let_go(desk, run)
                released += 1
        elif why == FOR_SLOT and none_ended:
            for_slot.append(run)
        elif len(waited_for) == 0 or why in (FOR_SLOT, FOR_PERSON) or _some_can_land(desk, tasks):
            _let_go(desk, run)
            released += 1
    released += _give_slots(desk, for_slot)
    if released:
        desk.notes.append(f"{released} runs may go on")


def _show_ids(desk: Desk, run: dg.DagsterRun, tasks: Iterable[TaskHead]) -> None:
    """Puts the ids at the place on the run: when it was queued, one may not have been heard yet."""
    shown = run.tags.get(TASK, "")
    if any(task.remote_id and task.name in shown for task in tasks):
        ids = shown_ids(task.remote_id or task.name for task in tasks)
        desk.instance.add_run_tags(run.run_id, {TASK: ids})


def _needs_no_slot(decided: set[ControlKind]) -> bool:
    """After a stop the run says so and ends; what is wanted now goes by plain calls."""
    paused = ControlKind.PAUSE in decided
    return any(kind.stops for kind in decided) or (ControlKind.NOW in decided and not paused)


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
    promised = Decimal(0)
    for run in sorted(runs, key=lambda run: run.tags.get(SINCE, "")):
        place = run.tags.get(PLACE, "")
        if place not in free:
            free[place] = _free_slots(desk, place)
        usd = _needed_usd(run)
        if free[place] > 0 and (usd is None or _fits(desk, run, promised + usd)):
            _let_go(desk, run)
            free[place] -= 1
            given += 1
            promised += usd or Decimal(0)
    return given


def _needed_usd(run: dg.DagsterRun) -> Decimal | None:
    """What must fit under the caps for the run; None where no cap held it back."""
    try:
        return Decimal(run.tags[CAP_USD]) if CAP_USD in run.tags else None
    except InvalidOperation:  # a person may write tags
        return None


def _fits(desk: Desk, run: dg.DagsterRun, usd: Decimal) -> bool:
    recipes = {work.recipe for work in desk.works.of(run)}
    project = desk.engine.project
    return all(over_cap(desk.engine, project.recipe(name), usd) is None for name in recipes)


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
