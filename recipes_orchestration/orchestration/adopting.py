"""The adopt sensor: watches over every open task and every run that waits for one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import dagster as dg

from ..engine.engine import Engine, open_engine
from ..engine.poll import poll_open
from ..engine.tidying import tidy
from ..errors import RecipesError
from ..ledger.task_rows import TaskHead
from ..project import Project
from .adoption_desk import Desk, open_desk
from .alerting import alert
from .cancelling import stop_runs
from .deferral import adopt_every
from .following import follow_stopped
from .orphans import find_orphans
from .reconciling import reconcile
from .releasing import release
from .run_tags import DEFERRING, YES
from .stop_runs import tell_stops

__all__ = ["adopt_sensor", "poll_interval"]

# Dagster ends a sensor's tick at 60 s.
BUDGET_SECONDS = 30.0
FRESH_SECONDS = 300.0
LEAST_SECONDS, MOST_SECONDS = 60.0, 300.0
# So many folders that are left at places are removed in a tick: there are few, where any.
MOST_FOLDERS = 20


def adopt_sensor(project: Project) -> dg.SensorDefinition:
    """Queues continuations, asks the places about open tasks, and lets runs go on."""

    @dg.sensor(
        name="recipes_adopt",
        description="Watches over tasks that are open elsewhere: queues the runs that wait for "
        "them, asks the places how they stand, and lets those runs go on when they have ended.",
        minimum_interval_seconds=adopt_every(),
        default_status=dg.DefaultSensorStatus.RUNNING,
        asset_selection=dg.AssetSelection.all(),
    )
    def tick(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with open_engine(project) as engine:
            return _tick(context, engine)

    return tick


def _tick(context: dg.SensorEvaluationContext, engine: Engine) -> dg.SensorResult:
    cursor = _Cursor.of(context.cursor)
    try:
        origin = context.code_location_origin
        location = None if origin is None else origin.location_name
        desk = open_desk(context.instance, engine, BUDGET_SECONDS, location)
    except RecipesError as error:
        return dg.SensorResult(skip_reason=str(error), cursor=context.cursor)
    polled: set[str] = set()
    parts: list[Callable[[], None]] = [
        lambda: _hand_over(desk),
        lambda: reconcile(desk),
        lambda: cursor.look_for_cancelled(desk),
        lambda: find_orphans(desk),
        lambda: polled.update(_poll(desk, cursor)),
        lambda: release(desk),
        lambda: follow_stopped(desk, polled),
        lambda: tell_stops(desk),
        lambda: engine.ledger.runs.forget(cursor.gone(desk)),
        lambda: alert(desk, context.log),
        lambda: tidy(engine, most=MOST_FOLDERS),
    ]
    for part in parts:
        try:
            part()
        except RecipesError as error:  # one place that does not answer stops nothing else
            desk.notes.append(str(error))
    return dg.SensorResult(
        run_requests=desk.requests,
        cursor=cursor.after(desk, polled).text(),
        skip_reason=None if desk.requests else _told(desk),
    )


def _hand_over(desk: Desk) -> None:
    """Queues the continuation of each run that waits to be deferred."""
    runs = [
        record.dagster_run
        for record in desk.active
        if record.dagster_run.tags.get(DEFERRING) == YES and desk.works.of(record.dagster_run)
    ]
    children = desk.children(run.run_id for run in runs)
    for run in runs:
        if run.run_id not in children:
            desk.go_on(run)


def _poll(desk: Desk, cursor: _Cursor) -> set[str]:
    """Asks the places that are due; gives their names."""
    now = datetime.now(UTC)
    due = {
        place
        for place, tasks in _by_place(desk.waited_for(desk.tasks)).items()
        if now >= cursor.asked.get(place, now) + timedelta(seconds=poll_interval(tasks, now))
        or place not in cursor.asked
    }
    if due:
        skip = {task.id for task in desk.tasks if task.place not in due}
        polled = poll_open(desk.engine, skip=skip)
        desk.ended |= {id for id, task in polled.items() if task.ended}
    return due


def poll_interval(tasks: Iterable[TaskHead], now: datetime) -> float:
    """Seconds between two questions to a place: none for fresh tasks, then 1 to 5 minutes."""
    youngest = min(
        (now - (task.stopped_at or task.sent_at or task.created_at)).total_seconds()
        for task in tasks
    )
    if youngest < FRESH_SECONDS:
        return 0.0
    return min(max(youngest / 12, LEAST_SECONDS), MOST_SECONDS)


def _by_place(tasks: Iterable[TaskHead]) -> dict[str, list[TaskHead]]:
    found: dict[str, list[TaskHead]] = {}
    for task in tasks:
        found.setdefault(task.place, []).append(task)
    return found


@dataclass
class _Cursor:
    """When each place was asked last, the runs that were at work when the tick began, until when
    cancelled runs have been looked for, and those that are to be looked at again.
    """

    asked: dict[str, datetime] = field(default_factory=dict[str, datetime])
    active: tuple[str, ...] = ()
    cancelled: datetime | None = None
    postponed: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str | None) -> _Cursor:
        if not text:
            return cls()
        values = json.loads(text)
        asked = {place: datetime.fromisoformat(at) for place, at in values["asked"].items()}
        cancelled = values.get("cancelled")
        return cls(
            asked,
            tuple(values["active"]),
            None if cancelled is None else datetime.fromisoformat(cancelled),
            tuple(values.get("postponed", ())),
        )

    def look_for_cancelled(self, desk: Desk) -> None:
        """Stops what runs were to do that were cancelled since the last tick."""
        self.cancelled, again = stop_runs(desk, self.cancelled, self.postponed)
        self.postponed = tuple(again)

    def gone(self, desk: Desk) -> set[str]:
        """The runs that have ended since: their heartbeats can be forgotten."""
        return set(self.active) - {record.dagster_run.run_id for record in desk.active}

    def after(self, desk: Desk, polled: Iterable[str]) -> _Cursor:
        now = datetime.now(UTC)
        active = tuple(record.dagster_run.run_id for record in desk.active)
        asked = {**self.asked, **dict.fromkeys(polled, now)}
        return _Cursor(asked, active, self.cancelled, self.postponed)

    def text(self) -> str:
        asked = {place: at.isoformat() for place, at in self.asked.items()}
        cancelled = None if self.cancelled is None else self.cancelled.isoformat()
        return json.dumps(
            {
                "asked": asked,
                "active": self.active,
                "cancelled": cancelled,
                "postponed": self.postponed,
            }
        )


def _told(desk: Desk) -> str:
    """What the tick saw and did when there is no run to queue."""
    waiting = len(desk.waited_for(desk.tasks))
    words = [f"{waiting} tasks are open, {len(desk.queued)} runs wait"]
    return "; ".join([*words, *desk.notes])[:1000]
