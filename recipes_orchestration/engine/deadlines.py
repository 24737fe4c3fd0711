"""Deadlines of steps: when one passes, its place is asked, a person told, and the batch ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from ..errors import RecipesError
from ..ledger.alerts import AlertKind, Cause
from ..ledger.controls import ControlKind, Scope
from ..ledger.tasks import TaskHead, TaskRow
from ..places.place import Standing, State
from ..recipe import Deadline
from .engine import Engine
from .heeding import AGAIN, steps_of_stage
from .land import DEADLINE

__all__ = ["keep_deadlines"]

AnyTask: TypeAlias = TaskHead | TaskRow


def keep_deadlines(engine: Engine, tasks: Sequence[AnyTask]) -> None:
    """Ends those of these open tasks whose step's deadline has passed.

    What they have answered lands. The rest is held, or goes as plain calls: a decision like a
    person's `now`, which whoever looks next carries out. One alert for each stage and place, with
    what the place says.
    """
    due = [task for task in tasks if _is_due(engine, task)]
    if not due:
        return
    stand = _asked(engine, due)
    passed: dict[tuple[str, str, str], list[AnyTask]] = defaultdict(list)
    for task in due:
        if task.id in stand:
            if task.stopped is None:
                passed[task.recipe, task.stage, task.place].append(task)
            else:
                _cancel(engine, task)
    for same in passed.values():
        _tell(engine, same, stand)
        for task in same:
            _end(engine, task)


def _asked(engine: Engine, tasks: Sequence[AnyTask]) -> dict[str, Standing]:
    """What the places say of those of the tasks that have not ended; nothing is done about them."""
    ids: dict[str, dict[str, str]] = defaultdict(dict)
    for task in tasks:
        if task.remote_id is not None:
            ids[task.place][task.id] = task.remote_id
    running: dict[str, Standing] = {}
    for name, here in ids.items():
        try:
            told = engine.place(name).statuses(set(here.values()))
        except RecipesError as error:
            told = dict.fromkeys(here.values(), Standing(State.RUNNING, str(error)))
        running |= {
            id: told[remote_id]
            for id, remote_id in here.items()
            if told[remote_id].state is State.RUNNING
        }
    return running


def _is_due(engine: Engine, task: AnyTask) -> bool:
    deadline = _deadline(engine, task)
    if deadline is None or task.held is not None or task.ended_at is not None:
        return False
    now = datetime.now(UTC)
    if task.stopped == DEADLINE and task.stopped_at is not None:
        return (now - task.stopped_at).total_seconds() > AGAIN
    if task.stopped is not None or now - (task.sent_at or task.created_at) < timedelta(0):
        return False
    return now - _since(engine, task) >= deadline.after


def _deadline(engine: Engine, task: AnyTask) -> Deadline | None:
    """The first of the task's steps' deadlines."""
    recipe = engine.project.recipes.get(task.recipe)
    if recipe is None or not recipe.deadlines:
        return None
    steps = steps_of_stage(engine, task.recipe, task.stage)
    own = [recipe.deadlines[step] for step in steps if step in recipe.deadlines]
    return min(own, key=lambda each: each.after, default=None)


def _since(engine: Engine, task: AnyTask) -> datetime:
    """When the task's pages were sent first: also before it, when a batch of all of them failed."""
    sent = task.sent_at or task.created_at
    steps = steps_of_stage(engine, task.recipe, task.stage)
    failed = {
        row.page_id: row.since
        for row in engine.ledger.holds.attempts_of(task.recipe, task.source, task.batch).values()
        if row.step in steps and not row.held and row.since < sent
    }
    row = engine.ledger.tasks.get(task.id) if failed else None
    if row is None or any(page_id not in failed for page_id, _ in row.pages):
        return sent
    first = max(failed[page_id] for page_id, _ in row.pages)
    before = engine.ledger.tasks.sent_before(task.recipe, task.stage, task.batch, first)
    return min(before or sent, sent)


def _end(engine: Engine, task: AnyTask) -> None:
    deadline = _deadline(engine, task)
    if deadline is not None and deadline.calls:
        (step, *_) = steps_of_stage(engine, task.recipe, task.stage)
        scope = Scope(task.recipe, batch=task.batch, step=step)
        words = f"the deadline of {_length(deadline.after)} has passed"
        engine.ledger.controls.decide(ControlKind.NOW, [scope], words, by="the deadline")
        return
    engine.ledger.tasks.stopped(task.id, DEADLINE)
    _cancel(engine, task)


def _cancel(engine: Engine, task: AnyTask) -> None:
    with suppress(RecipesError):  # asked again by and by
        engine.place(task.place).cancel(task.remote_id or "")


def _tell(engine: Engine, tasks: Sequence[AnyTask], stand: Mapping[str, Standing]) -> None:
    first = min(tasks, key=lambda task: task.sent_at or task.created_at)
    deadline = _deadline(engine, first)
    assert deadline is not None
    rest = "goes as plain calls" if deadline.calls else "is held"
    said = _said(stand[task.id].words for task in tasks)
    waited = datetime.now(UTC) - _since(engine, first)
    more = f" (and {len(tasks) - 1:,} more)" if len(tasks) > 1 else ""
    words = (
        f"The deadline of {_length(deadline.after)} has passed for {first.recipe}/{first.stage}: "
        f"batch {first.batch}, {first.remote_id} at {first.place}{more}, was sent "
        f"{waited.total_seconds() / 3600:.1f} hours ago. {first.place} says: {said}. What it has "
        f"answered lands; the rest {rest}."
    )
    cause = f"deadline/{first.recipe}/{first.stage}/{first.place}"
    with suppress(RecipesError):  # the batch is ended in any case
        engine.ledger.alerts.add(Cause(cause, AlertKind.DEADLINE, words))


def _said(words: Iterable[str]) -> str:
    told = list(dict.fromkeys(each.strip().rstrip(".") for each in words if each.strip()))
    return "; ".join(told[:3]) or "it is still at work on it"


def _length(length: timedelta) -> str:
    minutes = int(length.total_seconds() // 60)
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
