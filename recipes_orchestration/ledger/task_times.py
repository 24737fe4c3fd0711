"""How long provider batches and jobs took, from being sent to their end."""

from __future__ import annotations

import sqlalchemy as sa

from .connection import Database
from .tables import tasks

__all__ = ["TimesBook"]

LAST = 20


class TimesBook:
    """Times of earlier tasks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_batches(self, recipe: str, stage: str, place: str) -> list[float]:
        """Seconds of the last 20 tasks of the stage there that took a slot and ended by themselves.

        The newest first.
        """
        query = (
            sa.select(tasks.c.sent_at, tasks.c.ended_at)
            .where(
                tasks.c.recipe == recipe,
                tasks.c.stage == stage,
                tasks.c.place == place,
                tasks.c.slot,
                tasks.c.stopped.is_(None),
                tasks.c.sent_at.is_not(None),
                tasks.c.ended_at.is_not(None),
            )
            .order_by(tasks.c.ended_at.desc())
            .limit(LAST)
        )
        with self._database.reading() as connection:
            return [
                max(0.0, (ended - sent).total_seconds())
                for sent, ended in connection.execute(query)
            ]
