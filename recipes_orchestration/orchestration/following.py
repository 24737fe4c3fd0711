"""Tasks that a person stopped: followed to their end, and what they answered is landed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import dagster as dg

from ..engine.look import BatchView, PageState, look
from ..engine.stopping import STOPPED as BY_A_PERSON
from ..engine.stopping import land_stopped
from ..ledger.task_rows import TaskHead
from .adoption_desk import Desk
from .continuations import Work
from .orphans import latest_run
from .recording import record_view
from .run_tags import AWAIT, STOPPED, WAITING

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
    """Says on the cancelled run what came of the task, and records what is complete by it."""
    work = Work(task.recipe, task.stage, task.batch)
    steps = desk.works.steps.get((task.recipe, task.stage), ())
    view = None
    if steps:
        recipe = desk.engine.project.recipe(task.recipe)
        view = look(desk.engine, recipe, task.batch, steps)
        record_view(desk.engine, desk.instance, view, steps)
    id = task.remote_id or task.name
    words = f"{task.place} has ended {id}: {landed} of its results landed."
    desk.notes.append(words)
    run, _ = latest_run(desk, work)
    if run is None:
        return
    waited = AWAIT in run.tags or WAITING in run.tags
    if run.status is dg.DagsterRunStatus.CANCELED and waited:
        if view is not None:
            desk.instance.add_run_tags(run.run_id, {STOPPED: _landed_words(view)})
        desk.instance.report_engine_event(words, run)


def _landed_words(view: BatchView) -> str:
    """How many of the batch's pages have been through all the steps."""
    steps = view.steps.values()
    through = sum(
        all(step.states[page] is PageState.LANDED for step in steps) for page in view.pages
    )
    return f"{through} of {len(view.pages)} pages landed"
