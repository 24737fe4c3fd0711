"""What became of each task, open or not: its times, and what it was billed and told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from .connection import Database
from .tables import bookings, tasks

__all__ = ["RecordBook", "TaskRecord"]


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task without its pages. Times are UTC, money US dollars, `fingerprints` are by step.

    `lines` counts its outcomes by kind, and `report` is what the far side told of its work; each
    is None where there is none.
    """

    name: str
    recipe: str
    stage: str
    batch: str
    place: str
    state: str
    remote_id: str | None
    stopped: str | None
    message: str | None
    prepared_at: datetime
    sent_at: datetime | None
    ended_at: datetime | None
    landed_at: datetime | None
    estimate_usd: Decimal | None
    report: dict[str, Any] | None
    model: str | None
    lines: dict[str, int] | None
    tokens_in: int | None
    tokens_out: int | None
    landed_usd: Decimal | None
    wasted_usd: Decimal | None
    fingerprints: dict[str, str]


_OWN = ("name", "recipe", "stage", "batch", "place", "state", "remote_id", "stopped", "message")
_TIMES = ("created_at", "sent_at", "ended_at", "landed_at")
_BILLED = ("model", "lines", "tokens_in", "tokens_out", "landed_usd", "wasted_usd")
_RECORDS = sa.select(
    *(tasks.c[name] for name in (*_OWN, *_TIMES, "estimate_usd", "report")),
    *(bookings.c[name] for name in _BILLED),
    tasks.c.fingerprints,
).join(bookings, bookings.c.task_id == tasks.c.id, isouter=True)


class RecordBook:
    """Reads tasks with their bills."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, recipe: str | None = None, most: int = 200) -> list[TaskRecord]:
        """The last tasks that were prepared, of one recipe or of all, the newest first."""
        query = _RECORDS.order_by(tasks.c.created_at.desc(), tasks.c.name).limit(most)
        if recipe is not None:
            query = query.where(tasks.c.recipe == recipe)
        with self._database.reading() as connection:
            return [TaskRecord(*row) for row in connection.execute(query)]

    def of(self, id: str) -> TaskRecord | None:
        """The task of that id."""
        with self._database.reading() as connection:
            row = connection.execute(_RECORDS.where(tasks.c.id == id)).first()
        return None if row is None else TaskRecord(*row)
