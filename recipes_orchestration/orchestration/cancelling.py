"""Runs that a person cancelled: their tasks are ended as by a stop, and nobody begins them anew."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import dagster as dg

from ..engine.cancelled import settle_cancelled, stop_cancelled
from ..engine.look import look
from ..engine.stopped import where_stopped
from ..ledger.task_rows import TaskHead
from ..places.processes import process_lives, this_process
from .adoption_desk import ACTIVE, QUEUED, Desk
from .continuations import Work
from .reconciling import SILENT_AFTER
from .recording import record_stopped
from .run_tags import (
    CANCELLED,
    CONTINUES,
    PARENT_RUN_ID_TAG,
    PARTITION_NAME_TAG,
    STOPPED,
    shown_ids,
    tag_words,
)

__all__ = [
    "is_cancelled",
    "latest_run",
    "left_alone",
    "stop_run",
    "stop_runs",
    "tell_stopped",
    "was_stopped",
    "went_on",
]

# How far back the first tick looks for runs that were cancelled.
FIRST_LOOK = timedelta(minutes=10)
# The others follow in the next ticks.
MOST_TOGETHER = 200
# Runs of one partition that are looked through for the last one that was to do something.
LOOK_BACK = 50
_UNFINISHED = frozenset((*QUEUED, *ACTIVE))


def is_cancelled(run: dg.DagsterRun) -> bool:
    """Dagster ends a run so for nobody but a person: one whose process was killed has failed."""
    return run.status is dg.DagsterRunStatus.CANCELED


def latest_run(desk: Desk, work: Work) -> tuple[dg.DagsterRun | None, bool]:
    """The last run that was to do this, and whether one is still about it."""
    runs = desk.instance.get_runs(
        dg.RunsFilter(tags={PARTITION_NAME_TAG: work.batch}), limit=LOOK_BACK
    )
    about = [run for run in runs if work in desk.works.of(run)]
    busy = any(run.status in _UNFINISHED for run in about)
    return (about[0] if about else None), busy


def left_alone(task: TaskHead, run_process: str | None = None) -> bool:
    """Whether the process that sent the task, which may be no run at all, has left it.

    The sensor's own process becomes the owner of what it looks up by name, and watches nothing;
    neither does the process of a run that was cancelled.
    """
    owner = task.owner.partition("/")[0]
    if owner in (this_process(), run_process):
        return True
    lives = process_lives(owner)
    if lives is None:
        beat = task.heartbeat_at or task.created_at
        return (datetime.now(UTC) - beat).total_seconds() > SILENT_AFTER
    return not lives


def stop_runs(
    desk: Desk, since: datetime | None, postponed: Iterable[str]
) -> tuple[datetime, list[str]]:
    """Stops what runs had left to do that were cancelled since then, or were to be looked at again.

    Gives until when it has looked, and the runs to be looked at again.
    """
    again = [
        run_id
        for run_id in postponed
        if (run := desk.instance.get_run_by_id(run_id)) is not None and not stop_run(desk, run)
    ]
    since = since or datetime.now(UTC) - FIRST_LOOK
    records = desk.instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.CANCELED], updated_after=since),
        limit=MOST_TOGETHER,
        order_by="update_timestamp",
        ascending=True,
    )
    for record in records:
        if desk.seconds_left <= 0:
            break
        run = record.dagster_run
        if not stop_run(desk, run) and run.run_id not in again:
            again.append(run.run_id)
        since = record.update_timestamp.replace(tzinfo=UTC)
    return since, again[-MOST_TOGETHER:]


def was_stopped(run: dg.DagsterRun) -> bool:
    """Whether it was cancelled and what it had left to do is stopped; a person may have gone on
    with that since.
    """
    return run.tags.get(CANCELLED) == run.run_id


def stop_run(desk: Desk, run: dg.DagsterRun) -> bool:
    """Stops what a run had left to do that was cancelled, once, and says so on it.

    What a later run was to do as well is left to that one, unless it is the continuation that was
    queued while the person pressed the button, and to a command what that has sent since. False
    when another process is at it: the one before the run may not have ended yet.
    """
    if was_stopped(run):
        return True
    mine: dict[str, set[str]] = {}
    process = _process_of(desk, run)
    selected = desk.works.steps_of(run)
    works = desk.works.of(run)
    heads = [head for head in desk.engine.ledger.tasks.heads() if _work_of(head) in works]
    if went_on(desk, run, heads):
        return True
    for work in works:
        last, busy = latest_run(desk, work)
        if last is not None and (_is_again(last, run) or (last.run_id == run.run_id and not busy)):
            tasks = [task for task in heads if _work_of(task) == work]
            if not all(left_alone(task, process) for task in tasks):
                return False
            steps = set(desk.works.steps[work.recipe, work.stage])
            mine.setdefault(work.recipe, set()).update(steps & selected[work.recipe])
    for recipe, steps in mine.items():
        _stop(desk, run, recipe, steps)
    return True


def went_on(desk: Desk, run: dg.DagsterRun, tasks: Iterable[TaskHead]) -> bool:
    """Whether any of the tasks came after the run had ended: a person went on by a command.

    A run that was marked as cancelled while its process goes on does not count as one.
    """
    process = _process_of(desk, run)
    record = desk.instance.get_run_record_by_id(run.run_id)
    if record is None or record.end_time is None:
        return False
    ended = datetime.fromtimestamp(record.end_time, UTC)
    return any(
        task.created_at > ended and task.owner.partition("/")[0] != process for task in tasks
    )


def _is_again(later: dg.DagsterRun, run: dg.DagsterRun) -> bool:
    """Whether the later run is the continuation of this one."""
    return later.tags.get(CONTINUES) == run.run_id == later.tags.get(PARENT_RUN_ID_TAG)


def _process_of(desk: Desk, run: dg.DagsterRun) -> str | None:
    beat = desk.engine.ledger.runs.of([run.run_id]).get(run.run_id)
    return None if beat is None else beat.owner.partition("/")[0]


def _work_of(task: TaskHead) -> Work:
    return Work(task.recipe, task.stage, task.batch)


def _stop(desk: Desk, run: dg.DagsterRun, name: str, steps: set[str]) -> None:
    engine, batch = desk.engine, run.tags[PARTITION_NAME_TAG]
    recipe = engine.project.recipe(name)
    reason = f"run {run.run_id[:8]} was cancelled"
    stopped = stop_cancelled(engine, recipe, batch, steps, reason)
    if stopped is None:
        return
    desk.notes += stopped.unasked
    words = f"{stopped.words}."
    if stopped.ending:
        desk.stopped.update(task.id for task in stopped.ending)
        place = stopped.ending[0].place
        ids = shown_ids(task.remote_id or task.name for task in stopped.ending)
        words = f"Stopped by a person: {place} was asked to cancel {ids}. {words}"
    else:
        record_stopped(engine, desk.instance, look(engine, recipe, batch, steps), steps, words)
    tags = {CANCELLED: run.run_id, STOPPED: tag_words(f"{stopped.words}.")}
    desk.instance.add_run_tags(run.run_id, tags)
    desk.instance.report_engine_event(words, run)
    desk.notes.append(f"{name} {batch}: {words}")


def tell_stopped(desk: Desk, work: Work, words: str) -> None:
    """Says where a stage stands of which a task has ended that a person had stopped: on the run
    that was cancelled, and when all have ended on its assets.
    """
    engine, recipe = desk.engine, desk.engine.project.recipe(work.recipe)
    steps = desk.works.steps[work.recipe, work.stage]
    settle_cancelled(engine, recipe, work.batch)
    standing = f"{where_stopped(engine, recipe, [work.batch], steps)}."
    if standing.startswith("Stopped"):
        view = look(engine, recipe, work.batch, steps)
        record_stopped(engine, desk.instance, view, steps, standing)
    run, _ = latest_run(desk, work)
    if run is not None and not is_cancelled(run):
        before = desk.instance.get_run_by_id(run.tags.get(CONTINUES, ""))
        run = before if before is not None and _is_again(run, before) else run
    if run is not None and is_cancelled(run):
        desk.instance.add_run_tags(run.run_id, {STOPPED: tag_words(standing)})
        desk.instance.report_engine_event(f"{words} {standing}", run)
