"""Open tasks that no run watches: adopted by a continuation, or stopped as a person said."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

import dagster as dg

from ..engine.stopping import STOPPED as BY_A_PERSON
from ..engine.stopping import stop_tasks
from ..ledger.task_rows import TaskHead
from ..places.processes import process_lives, this_process
from .adoption_desk import ACTIVE, QUEUED, Desk
from .continuations import Work
from .events import step_key
from .reconciling import SILENT_AFTER
from .run_tags import (
    AWAIT,
    ENDED,
    FAILURES,
    FOR_TASKS,
    OPEN,
    PARTITION_NAME_TAG,
    PLACE,
    STOPPED,
    TASK,
    WAITING,
    shown_ids,
)

__all__ = ["find_orphans", "latest_run"]

# A task whose runs failed so often is left to a person.
MOST_FAILURES = 3
# Each continuation costs the daemon a moment; the others follow in the next ticks.
MOST_TOGETHER = 50
# Runs of one partition that are looked through for the one that sent a task.
LOOK_BACK = 50
_UNFINISHED = frozenset((*QUEUED, *ACTIVE))


def find_orphans(desk: Desk) -> None:
    """Gives each stage of a batch with open tasks and nobody at it what its last run asks for.

    A run that was cancelled while it waited was stopped by a person, and so are its tasks. Any
    other left them behind: they get a continuation.
    """
    watched = _watched(desk)
    left: dict[Work, list[TaskHead]] = defaultdict(list)
    for task in desk.tasks:
        work = Work(task.recipe, task.stage, task.batch)
        followed = task.stopped == BY_A_PERSON or task.held is not None
        if work not in watched and not followed and _alone(task):
            left[work].append(task)
    adopted: set[str] = set()
    for work, tasks in left.items():
        if desk.seconds_left <= 0 or len(adopted) >= MOST_TOGETHER:
            break
        if (work.recipe, work.stage) not in desk.works.steps:
            continue  # the recipe has changed: nothing could land there
        run, busy = latest_run(desk, work)
        if busy or not _still_open(desk, tasks):
            continue
        if run is None:
            desk.requests.append(_first_run(desk, work, tasks))
            adopted.add(tasks[0].name)
        elif run.run_id not in adopted:
            adopted.add(run.run_id)
            _follow(desk, run, tasks)


def latest_run(desk: Desk, work: Work) -> tuple[dg.DagsterRun | None, bool]:
    """The last run that was to do this, and whether one is still about it."""
    runs = desk.instance.get_runs(
        dg.RunsFilter(tags={PARTITION_NAME_TAG: work.batch}), limit=LOOK_BACK
    )
    about = [run for run in runs if work in desk.works.of(run)]
    busy = any(run.status in _UNFINISHED for run in about)
    return (about[0] if about else None), busy


def _watched(desk: Desk) -> set[Work]:
    return {
        work
        for record in (*desk.queued, *desk.active)
        for work in desk.works.of(record.dagster_run)
    }


def _alone(task: TaskHead) -> bool:
    """Whether the process that sent the task, which may be no run at all, has left it.

    The sensor's own process becomes the owner of what it looks up by name, and watches nothing.
    """
    owner = task.owner.partition("/")[0]
    if owner == this_process():
        return True
    lives = process_lives(owner)
    if lives is None:
        beat = task.heartbeat_at or task.created_at
        return (datetime.now(UTC) - beat).total_seconds() > SILENT_AFTER
    return not lives


def _still_open(desk: Desk, tasks: Iterable[TaskHead]) -> bool:
    """A run that landed them may have ended since the tick began."""
    ids = {task.id for task in tasks}
    return any(head.id in ids for head in desk.engine.ledger.tasks.heads(slot=True))


def _follow(desk: Desk, run: dg.DagsterRun, tasks: list[TaskHead]) -> None:
    waited = AWAIT in run.tags or WAITING in run.tags
    if run.status is dg.DagsterRunStatus.CANCELED and waited:
        _stop(desk, run, tasks)
        return
    failures = int(run.tags.get(FAILURES, "0"))
    if run.status is dg.DagsterRunStatus.FAILURE:
        failures += 1
    if failures >= MOST_FAILURES:
        desk.notes.append(
            f"{shown_ids(_ids(tasks))} is open but {failures} runs failed at it: see run "
            f"{run.run_id}, then launch it again"
        )
        return
    if desk.go_on(run, {FAILURES: str(failures)} if failures else None):
        desk.notes.append(f"{shown_ids(_ids(tasks))} is adopted after run {run.run_id}")


def _stop(desk: Desk, run: dg.DagsterRun, tasks: list[TaskHead]) -> None:
    desk.notes += stop_tasks(desk.engine, tasks)
    place = tasks[0].place
    words = (
        f"Stopped by a person: {place} was asked to cancel {shown_ids(_ids(tasks))}. "
        "What it has answered by then will land; nothing more is sent."
    )
    desk.instance.add_run_tags(run.run_id, {STOPPED: f"cancelling at {place}"})
    desk.instance.report_engine_event(words, run)
    desk.notes.append(f"{shown_ids(_ids(tasks))} is being cancelled at {place}")


def _first_run(desk: Desk, work: Work, tasks: list[TaskHead]) -> dg.RunRequest:
    """For tasks that no run of Dagster sent: a command that has ended, or a lost run storage."""
    steps = desk.works.steps[work.recipe, work.stage]
    return dg.RunRequest(
        # With the hour: if that run goes away too, another may follow.
        run_key=f"adopt/{tasks[0].name}/{int(time.time() // 3600)}",
        asset_selection=[step_key(work.recipe, step) for step in steps],
        partition_key=work.batch,
        tags={
            AWAIT: OPEN if desk.waited_for(tasks) else ENDED,
            WAITING: FOR_TASKS,
            TASK: shown_ids(_ids(tasks)),
            PLACE: tasks[0].place,
        },
    )


def _ids(tasks: Iterable[TaskHead]) -> list[str]:
    return [task.remote_id or task.name for task in tasks]
