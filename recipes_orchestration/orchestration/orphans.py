"""Open tasks that no run watches: adopted by a continuation, or stopped as a person said."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable

import dagster as dg

from ..engine.heeding import end_for
from ..engine.stopping import STOPPED as BY_A_PERSON
from ..engine.stopping import stop_tasks
from ..ledger.task_rows import TaskHead
from .adoption_desk import Desk
from .cancelling import is_cancelled, latest_run, left_alone, stop_run, was_stopped, went_on
from .continuations import Work
from .events import step_key
from .run_tags import (
    AWAIT,
    ENDED,
    FAILURES,
    FOR_TASKS,
    OPEN,
    PLACE,
    TASK,
    WAITING,
    shown_ids,
)

__all__ = ["find_orphans"]

# A task whose runs failed so often is left to a person.
MOST_FAILURES = 3
# Each continuation costs the daemon a moment; the others follow in the next ticks.
MOST_TOGETHER = 50


def find_orphans(desk: Desk) -> None:
    """Gives each stage of a batch with open tasks and nobody at it what its last run asks for.

    A run that was cancelled was stopped by a person, and so are its tasks. Any other left them
    behind: they get a continuation.
    """
    watched = _watched(desk)
    left: dict[Work, list[TaskHead]] = defaultdict(list)
    for task in desk.tasks:
        work = Work(task.recipe, task.stage, task.batch)
        stopped = task.stopped == BY_A_PERSON or task.id in desk.stopped
        followed = stopped or task.held is not None
        if work in watched or followed or not left_alone(task):
            continue
        # What a person has stopped is ended by the poll.
        if end_for(desk.engine, task, desk.controls) != BY_A_PERSON:
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


def _watched(desk: Desk) -> set[Work]:
    return {
        work
        for record in (*desk.queued, *desk.active)
        for work in desk.works.of(record.dagster_run)
    }


def _still_open(desk: Desk, tasks: Iterable[TaskHead]) -> bool:
    """A run that landed them may have ended since the tick began."""
    ids = {task.id for task in tasks}
    return any(head.id in ids for head in desk.engine.ledger.tasks.heads(slot=True))


def _follow(desk: Desk, run: dg.DagsterRun, tasks: list[TaskHead]) -> None:
    if is_cancelled(run) and not was_stopped(run) and not went_on(desk, run, tasks):
        stop_run(desk, run)
        # Of what has landed already nothing is left to stop but the tasks.
        desk.notes += stop_tasks(desk.engine, [t for t in tasks if t.id not in desk.stopped])
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
