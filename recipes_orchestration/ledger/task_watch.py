"""Open tasks watched over: who does, what was asked of them meanwhile, and which wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from ..errors import LedgerError
from .connection import Database, portions
from .tables import tasks
from .task_rows import (
    HEAD_COLUMNS,
    OPEN_STATES,
    TaskHead,
    TaskRow,
    TaskState,
    select_tasks,
    slots_taken,
    task_head,
    task_row,
)
from .words import kept_words

__all__ = ["TaskWatch"]


class TaskWatch:
    """What happens to open tasks between sending and landing. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, id: str) -> TaskRow | None:
        """The task of that id."""
        query = select_tasks().where(tasks.c.id == id)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else task_row(row)

    def open(
        self,
        recipe: str | None = None,
        stage: str | None = None,
        batch: str | None = None,
        place: str | None = None,
    ) -> list[TaskRow]:
        """The tasks in an open state, oldest first."""
        return self._rows(*_open(recipe, stage, batch, place))

    def heads(
        self,
        recipe: str | None = None,
        stage: str | None = None,
        batch: str | None = None,
        place: str | None = None,
        *,
        slot: bool | None = None,
    ) -> list[TaskHead]:
        """The open tasks without their pages, oldest first."""
        query = sa.select(*HEAD_COLUMNS).where(*_open(recipe, stage, batch, place))
        if slot is not None:
            query = query.where(tasks.c.slot.is_(slot))
        query = query.order_by(tasks.c.created_at, tasks.c.id)
        with self._database.reading() as connection:
            return [task_head(row) for row in connection.execute(query)]

    def slots_taken(self, place: str) -> int:
        """How many slots of the place are taken by open tasks."""
        with self._database.reading() as connection:
            return slots_taken(connection, place)

    def is_open(self, id: str) -> bool:
        """Whether nobody has closed the task: landed or dropped it."""
        query = sa.select(sa.literal(1)).where(tasks.c.id == id, tasks.c.state.in_(OPEN_STATES))
        with self._database.reading() as connection:
            return connection.scalar(query) is not None

    def stopped(self, id: str, why: str) -> bool:
        """The place was asked to end the task; `why` is kept of the first time."""
        return self._change(id, tasks.c.stopped.is_(None), stopped=why, stopped_at=_now())

    def hold(self, id: str, words: str) -> bool:
        """The task waits for a person: it stays open and is not asked about any more."""
        return self._change(id, held=kept_words(words), held_at=_now())

    def fetch_failed(self, id: str) -> int:
        """Counts a failed fetch of the task's results; gives how many there were."""
        self._change(id, fetches=tasks.c.fetches + 1)
        return self._existing(id).fetches

    def reported(self, id: str, facts: Mapping[str, Any]) -> bool:
        """Keeps what the far side told of its work on the task."""
        return self._change(id, report=dict(facts))

    def last_report(self, recipe: str, stage: str, place: str) -> dict[str, Any] | None:
        """What the far side told last of the stage, of any batch."""
        query = (
            sa.select(tasks.c.report)
            .where(tasks.c.recipe == recipe, tasks.c.stage == stage, tasks.c.place == place)
            .where(tasks.c.state == TaskState.landed, tasks.c.ended_at.is_not(None))
            .where(tasks.c.report.is_not(None))
            .order_by(tasks.c.landed_at.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.scalar(query)

    def last_reports(
        self, recipe: str, stage: str, place: str, most: int = 20
    ) -> list[dict[str, Any]]:
        """What the far side told of the last tasks of the stage that landed, the newest first."""
        query = (
            sa.select(tasks.c.report)
            .where(tasks.c.recipe == recipe, tasks.c.stage == stage, tasks.c.place == place)
            .where(tasks.c.state == TaskState.landed, tasks.c.report.is_not(None))
            .order_by(tasks.c.landed_at.desc())
            .limit(most)
        )
        with self._database.reading() as connection:
            return [report for report in connection.scalars(query) if report]

    def reports(self, recipe: str, batch: str, step: str, fingerprint: str) -> list[dict[str, Any]]:
        """What the far side told of the batch's tasks that had the step as it is."""
        query = (
            sa.select(tasks.c.report, tasks.c.fingerprints)
            .where(tasks.c.recipe == recipe, tasks.c.batch == batch)
            .where(tasks.c.report.is_not(None))
            .order_by(tasks.c.created_at, tasks.c.id)
        )
        with self._database.reading() as connection:
            found = connection.execute(query).all()
        return [report for report, steps in found if report and steps.get(step) == fingerprint]

    def sent_before(self, recipe: str, stage: str, batch: str, moment: datetime) -> datetime | None:
        """When the last of the batch's tasks was sent that were sent before the moment."""
        query = (
            sa.select(sa.func.max(tasks.c.sent_at))
            .where(tasks.c.recipe == recipe, tasks.c.stage == stage, tasks.c.batch == batch)
            .where(tasks.c.sent_at < moment)
        )
        with self._database.reading() as connection:
            return connection.scalar(query)

    def release(self, recipe: str, stage: str | None = None, batch: str | None = None) -> int:
        """Held tasks of the recipe are asked about again; gives how many."""
        asked = {"recipe": recipe, "stage": stage, "batch": batch}
        where = [tasks.c[name] == value for name, value in asked.items() if value is not None]
        free = sa.update(tasks).where(tasks.c.held.is_not(None), tasks.c.state.in_(OPEN_STATES))
        free = free.where(*where).values(held=None, held_at=None, fetches=0)
        return self._database.write(lambda connection: connection.execute(free).rowcount)

    def beat(self, ids: Collection[str], owner: str) -> set[str]:
        """Says that the owner still watches over its open tasks; gives those that are its own."""

        def work(connection: sa.Connection) -> set[str]:
            mine: set[str] = set()
            for portion in portions(sorted(set(ids))):
                beaten = (
                    sa.update(tasks)
                    .where(tasks.c.id.in_(portion), tasks.c.owner == owner)
                    .where(tasks.c.state.in_(OPEN_STATES))
                    .values(heartbeat_at=datetime.now(UTC))
                    .returning(tasks.c.id)
                )
                mine.update(connection.scalars(beaten))
            return mine

        return self._database.write(work)

    def steal(self, id: str, owner: str, seen_heartbeat: datetime | None) -> bool:
        """Makes `owner` the owner, unless the heartbeat has moved since it was seen.

        Of several processes that saw the same heartbeat exactly one gets the task.
        """
        now = datetime.now(UTC)
        if seen_heartbeat is not None:
            # A clock that stands still or goes back must not leave the heartbeat as it was seen.
            now = max(now, seen_heartbeat + timedelta(microseconds=1))
        unmoved = (
            tasks.c.heartbeat_at.is_(None)
            if seen_heartbeat is None
            else tasks.c.heartbeat_at == seen_heartbeat
        )
        steal = (
            sa.update(tasks)
            .where(tasks.c.id == id, unmoved, tasks.c.state.in_(OPEN_STATES))
            .values(owner=owner, heartbeat_at=now)
        )
        return self._database.write(lambda connection: connection.execute(steal).rowcount == 1)

    def _existing(self, id: str) -> TaskRow:
        task = self.get(id)
        if task is None:
            raise LedgerError(
                f"The ledger {self._database.address.shown} has no task {id}: it was made in "
                "another ledger; see that every process uses the same RECIPES_LEDGER_URL."
            )
        return task

    def _change(self, id: str, *where: sa.ColumnElement[bool], **values: object) -> bool:
        change = sa.update(tasks).where(tasks.c.id == id, tasks.c.state.in_(OPEN_STATES), *where)
        return self._database.write(
            lambda connection: connection.execute(change.values(values)).rowcount == 1
        )

    def _rows(self, *where: sa.ColumnElement[bool]) -> list[TaskRow]:
        query = select_tasks().where(*where).order_by(tasks.c.created_at, tasks.c.id)
        with self._database.reading() as connection:
            return [task_row(row) for row in connection.execute(query)]


def _now() -> datetime:
    return datetime.now(UTC)


def _open(*named: str | None) -> list[sa.ColumnElement[bool]]:
    """What open tasks of that recipe, stage, batch and place are, of each that is named."""
    columns = (tasks.c.recipe, tasks.c.stage, tasks.c.batch, tasks.c.place)
    asked = zip(columns, named, strict=True)
    return [
        tasks.c.state.in_(OPEN_STATES),
        *(column == name for column, name in asked if name is not None),
    ]
