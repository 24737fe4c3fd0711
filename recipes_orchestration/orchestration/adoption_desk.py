"""What one tick of the adopt sensor works with, and what it has seen when it begins."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

import dagster as dg

from ..engine.engine import Engine
from ..ledger.controls import Control, ControlKind
from ..ledger.task_rows import TaskHead, TaskState
from .continuations import Work, Works, continuation, left_of
from .run_tags import (
    AWAIT,
    CAP_USD,
    ENDED,
    FOR_PERSON,
    FOR_SLOT,
    FOR_TASKS,
    OPEN,
    PARENT_RUN_ID_TAG,
    PLACE,
    RIVALS,
    SINCE,
    TASK,
    WAITING,
    shown_ids,
)

__all__ = ["ACTIVE", "QUEUED", "Desk", "open_desk"]

QUEUED = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED)
ACTIVE = (
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


@dataclass
class Desk:
    """The open tasks and the runs that are about, as they stood when the tick began.

    `queued` are continuations in the queue, oldest first, `active` all runs that a process works
    on or should. `requests` are the runs to be queued and `notes` what the tick did, in words.
    `ended` are the ids of tasks which their places are known to be done with, `stopped` of those
    that this tick has asked them to end.
    """

    instance: dg.DagsterInstance
    engine: Engine
    works: Works
    deadline: float
    tasks: list[TaskHead]
    queued: Sequence[dg.RunRecord]
    active: Sequence[dg.RunRecord]
    ended: set[str] = field(default_factory=set[str])
    stopped: set[str] = field(default_factory=set[str])
    requests: list[dg.RunRequest] = field(default_factory=list[dg.RunRequest])
    notes: list[str] = field(default_factory=list[str])

    @property
    def seconds_left(self) -> float:
        """Until the tick should come to its end."""
        return self.deadline - time.monotonic()

    def tasks_of(self, works: Iterable[Work]) -> list[TaskHead]:
        """The open tasks of these stages and batches, oldest first."""
        return [task for work in works for task in self._by_work.get(work, ())]

    def awaited_by(self, run: dg.DagsterRun) -> list[TaskHead]:
        """The open tasks that the run waits for: its own, and those that have equal pages."""
        own = self.tasks_of(self.works.of(run))
        rivals = set(run.tags.get(RIVALS, "").split(","))
        return [*own, *(task for task in self.tasks if task.id in rivals and task not in own)]

    def waited_for(self, tasks: Iterable[TaskHead]) -> list[TaskHead]:
        """Those of the tasks which their places are not yet done with."""
        return [task for task in tasks if task.id not in self.ended and task.held is None]

    def children(self, run_ids: Iterable[str]) -> dict[str, dg.DagsterRun]:
        """The continuation of each run that has one, by the id of the run before."""
        ids = sorted(set(run_ids))
        if not ids:
            return {}
        tags = {PARENT_RUN_ID_TAG: ids, AWAIT: [OPEN, ENDED]}
        return {
            run.tags[PARENT_RUN_ID_TAG]: run
            for run in self.instance.get_runs(dg.RunsFilter(tags=tags))
        }

    def go_on(self, run: dg.DagsterRun, tags: dict[str, str] | None = None) -> bool:
        """Asks for the run's continuation; False when nothing is left for it to do."""
        left = left_of(self.instance, run)
        if not left.assets:
            return False
        tasks = self.awaited_by(run)
        why = run.tags.get(WAITING)
        not_sent = why in (FOR_SLOT, FOR_PERSON)
        told = {WAITING: str(why) if not_sent else FOR_TASKS, **(tags or {})}
        if tasks:
            told[TASK] = shown_ids(task.remote_id or task.name for task in tasks)
        told |= {name: run.tags[name] for name in (RIVALS, CAP_USD) if name in run.tags}
        place = tasks[0].place if tasks else run.tags.get(PLACE)
        if place:
            told[PLACE] = place
        if not_sent:
            told[SINCE] = run.tags.get(SINCE) or datetime.now(UTC).isoformat()
        stays = not_sent or bool(self.waited_for(tasks))
        self.requests.append(continuation(run, left, told, state=OPEN if stays else ENDED))
        return True

    def controls_of(self, run: dg.DagsterRun) -> set[ControlKind]:
        """What people decided about the stages of the run at the place that it waits for."""
        kinds: set[ControlKind] = set()
        for work in self.works.of(run) if self.controls else ():
            steps = self.works.steps[work.recipe, work.stage]
            places = {
                step.place
                for step in self.engine.project.recipe(work.recipe).steps
                if step.name in steps
            }
            if run.tags.get(PLACE) in places:
                kinds |= {
                    control.kind
                    for control in self.controls
                    if control.scope.covers(work.recipe, work.batch, steps)
                }
        return kinds

    @cached_property
    def controls(self) -> list[Control]:
        """What people have decided, as it stood when it was first looked at."""
        return self.engine.ledger.controls.all()

    @cached_property
    def _by_work(self) -> dict[Work, list[TaskHead]]:
        found: dict[Work, list[TaskHead]] = defaultdict(list)
        for task in self.tasks:
            found[Work(task.recipe, task.stage, task.batch)].append(task)
        return found


def open_desk(
    instance: dg.DagsterInstance,
    engine: Engine,
    budget_seconds: float,
    location: str | None = None,
) -> Desk:
    """Reads the tasks first and the queue before the active runs.

    A run goes from the queue to a process and its task from open to landed: read in this order,
    neither can be missed on its way.
    """
    deadline = time.monotonic() + budget_seconds
    tasks = engine.ledger.tasks.heads(slot=True)
    queued = instance.get_run_records(
        dg.RunsFilter(tags={AWAIT: [OPEN, ENDED]}, statuses=list(QUEUED)), ascending=True
    )
    active = instance.get_run_records(dg.RunsFilter(statuses=list(ACTIVE)), ascending=True)
    return Desk(
        instance=instance,
        engine=engine,
        works=Works(engine.project, instance, location),
        deadline=deadline,
        tasks=tasks,
        queued=queued,
        active=active,
        ended={task.id for task in tasks if task.state is TaskState.ended},
    )
