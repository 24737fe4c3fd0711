"""Tasks that a person stopped: followed to their end, and what they answered is landed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from ..engine.look import look
from ..engine.stopping import STOPPED as BY_A_PERSON
from ..engine.stopping import land_stopped
from ..ledger.task_rows import TaskHead
from .adoption_desk import Desk
from .cancelling import tell_stopped
from .continuations import Work
from .recording import record_view

__all__ = ["follow_stopped"]

ASKED_AGAIN_AFTER = timedelta(minutes=2)


def follow_stopped(desk: Desk, asked: Collection[str]) -> None:
    """Lands what stopped tasks answered once their places have ended them; sends nothing.

    `asked` are the places that were asked in this tick: one that goes on with a task long after
    it was to end it is told so again.
    """
    now = datetime.now(UTC)
    for task in desk.tasks:
        if desk.seconds_left <= 0:
            return
        if task.stopped != BY_A_PERSON or task.held is not None:
            continue
        deaf = task.stopped_at is not None and now - task.stopped_at > ASKED_AGAIN_AFTER
        if task.id in desk.ended or (deaf and task.place in asked):
            at_rest, landed = land_stopped(desk.engine, task.id)
            if at_rest:
                _tell(desk, task, landed)


def _tell(desk: Desk, task: TaskHead, landed: int) -> None:
    """Records what is complete by what came of the task, and says the rest of it."""
    id = task.remote_id or task.name
    words = f"{task.place} has ended {id}: {landed} of its results landed."
    desk.notes.append(words)
    steps = desk.works.steps.get((task.recipe, task.stage), ())
    if not steps:
        return
    view = look(desk.engine, desk.engine.project.recipe(task.recipe), task.batch, steps)
    record_view(desk.engine, desk.instance, view, steps)
    tell_stopped(desk, Work(task.recipe, task.stage, task.batch), words)
