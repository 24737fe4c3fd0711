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
    """A task without its pages. Times are UTC, money US dollars.

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


class RecordBook:
    """Reads tasks with their bills."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, recipe: str | None = None, most: int = 200) -> list[TaskRecord]:
        """The last tasks that were prepared, of one recipe or of all, the newest first."""
        own = ("name", "recipe", "stage", "batch", "place", "state", "remote_id", "stopped")
        own = (*own, "message", "created_at", "sent_at", "ended_at", "landed_at")
        billed = ("model", "lines", "tokens_in", "tokens_out", "landed_usd", "wasted_usd")
        query = (
            sa.select(
                *(tasks.c[name] for name in (*own, "estimate_usd", "report")),
                *(bookings.c[name] for name in billed),
            )
            .join(bookings, bookings.c.task_id == tasks.c.id, isouter=True)
            .order_by(tasks.c.created_at.desc(), tasks.c.name)
            .limit(most)
        )
        if recipe is not None:
            query = query.where(tasks.c.recipe == recipe)
        with self._database.reading() as connection:
            return [TaskRecord(*row) for row in connection.execute(query)]
