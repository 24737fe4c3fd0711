"""Open tasks that a person's decision says are to end: their places are asked to end them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..errors import ProviderError, RecipesError
from ..ledger.controls import BY_NOW, BY_STOP, Control, ControlKind
from ..ledger.tasks import TaskHead, TaskRow
from ..stages import stages_of
from .adopt import give_up
from .engine import Engine

__all__ = ["BY_NOW", "BY_STOP", "Heeded", "end_for", "heed", "steps_of_stage"]

# A place that goes on with a task so many seconds after it was to end it is told so again.
AGAIN = 120.0


@dataclass
class Heeded:
    """The tasks that are to end, and words for each whose place could not be asked."""

    tasks: list[TaskHead | TaskRow] = field(default_factory=list["TaskHead | TaskRow"])
    unasked: list[str] = field(default_factory=list[str])


def heed(engine: Engine, tasks: Sequence[TaskHead | TaskRow]) -> Heeded:
    """Ends what is to end of these open tasks.

    Read before each poll, so that a task which was being sent while a person decided is ended by
    the next one. A task of this process is given up: what it finished lands.
    """
    controls = _by_batch(engine.ledger.controls.all() if tasks else [])
    heeded = Heeded()
    for task in tasks:
        here = [*controls.get("", ()), *controls.get(task.batch, ())]
        why = end_for(engine, task, here) if here else None
        if why is None and _found_since(task):
            why = task.stopped
        if why is None or task.held:
            continue
        heeded.tasks.append(task)
        try:
            _end(engine, task, why)
        except ProviderError as error:
            words = f"{task.remote_id} at {task.place} could not be ended: {error}"
            heeded.unasked.append(words)
    return heeded


def end_for(engine: Engine, task: TaskHead | TaskRow, controls: Iterable[Control]) -> str | None:
    """Why the task is to end, by these decisions; None when it may go on."""
    steps = steps_of_stage(engine, task.recipe, task.stage)
    kinds = {each.kind for each in controls if each.scope.covers(task.recipe, task.batch, steps)}
    if any(kind.stops for kind in kinds):
        return BY_STOP
    return BY_NOW if ControlKind.NOW in kinds and task.slot else None


def _by_batch(controls: Iterable[Control]) -> dict[str, list[Control]]:
    """Those of each batch; ``""`` has those of more than one. There may be one a batch."""
    found: dict[str, list[Control]] = {}
    for control in controls:
        found.setdefault(control.scope.batch, []).append(control)
    return found


def _end(engine: Engine, task: TaskHead | TaskRow, why: str) -> None:
    try:
        place = engine.place(task.place)
    except RecipesError:  # such as a key that is not set here: another process can ask
        engine.ledger.tasks.stopped(task.id, why)
        return
    if place.ends_here(task.remote_id):
        row = engine.ledger.tasks.get(task.id) if task.owner == engine.owner else None
        if row is not None:
            give_up(engine, row)
        return
    first = engine.ledger.tasks.stopped(task.id, why)
    if task.remote_id is None or task.ended_at is not None:
        return
    if not first and not _is_due(engine, task):
        return
    engine.end_again[task.id] = time.monotonic() + AGAIN
    place.cancel(task.remote_id)


def _is_due(engine: Engine, task: TaskHead | TaskRow) -> bool:
    """Whether the place is to be asked once more."""
    if task.stopped not in (BY_STOP, BY_NOW) or task.stopped_at is None:
        return False
    if time.monotonic() < engine.end_again.get(task.id, 0.0):
        return False
    asked_for = (datetime.now(UTC) - task.stopped_at).total_seconds()
    return _found_since(task) or asked_for > AGAIN


def _found_since(task: TaskHead | TaskRow) -> bool:
    """Whether the task got its id after a person wanted its end: its place knows nothing of that.

    So it is ended even when the person has thought better of it: it cannot be told from one whose
    place was asked, and what it leaves is sent again.
    """
    return (
        task.stopped in (BY_STOP, BY_NOW)
        and task.stopped_at is not None
        and task.sent_at is not None
        and task.sent_at >= task.stopped_at
    )


def steps_of_stage(engine: Engine, recipe: str, stage: str) -> tuple[str, ...]:
    """The steps of a task's stage; of a recipe that has changed, its name at least."""
    known = engine.project.recipes.get(recipe)
    for each in () if known is None else stages_of(known):
        if each.name == stage:
            return tuple(step.name for step in each.steps)
    return (stage,)
