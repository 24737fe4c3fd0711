"""Tasks that a person stopped: followed to their end, and what they answered is landed."""

from __future__ import annotations

import dagster as dg

from ..engine.look import look
from ..engine.stopping import land_stopped
from ..ledger.task_rows import TaskHead
from .adoption_desk import Desk
from .continuations import Work
from .orphans import latest_run
from .recording import record_view
from .run_tags import AWAIT, STOPPED, WAITING

__all__ = ["follow_stopped"]


def follow_stopped(desk: Desk) -> None:
    """Lands what stopped tasks answered once their places have ended them; sends nothing."""
    for task in desk.tasks:
        if desk.seconds_left <= 0:
            return
        if task.stopped is None or task.id not in desk.ended or task.held is not None:
            continue
        row = desk.engine.ledger.tasks.get(task.id)
        if row is None:
            continue
        landed = land_stopped(desk.engine, row)
        _tell(desk, task, landed, len(row.pages))


def _tell(desk: Desk, task: TaskHead, landed: int, pages: int) -> None:
    """Says on the cancelled run what came of the task, and records what is complete by it."""
    work = Work(task.recipe, task.stage, task.batch)
    steps = desk.works.steps.get((task.recipe, task.stage), ())
    if steps:
        recipe = desk.engine.project.recipe(task.recipe)
        view = look(desk.engine, recipe, task.batch, steps)
        record_view(desk.engine, desk.instance, view, steps)
    id = task.remote_id or task.name
    words = f"{task.place} has ended {id}: {landed} of its {pages} pages had an answer and landed."
    desk.notes.append(words)
    run, _ = latest_run(desk, work)
    if run is None:
        return
    waited = AWAIT in run.tags or WAITING in run.tags
    if run.status is dg.DagsterRunStatus.CANCELED and waited:
        desk.instance.add_run_tags(run.run_id, {STOPPED: f"{landed} of {pages} pages landed"})
        desk.instance.report_engine_event(words, run)
