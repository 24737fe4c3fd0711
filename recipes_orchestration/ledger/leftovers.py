"""Folders at places whose tasks are over: who removes them, and which are left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from .connection import Database, portions
from .tables import tasks
from .task_rows import FarFolder, TaskState, name_is_free

__all__ = ["WANTED", "Leftover", "LeftoverBook"]

WANTED = timedelta(days=1)
"""What was sent of a task that its place never had is kept so long for another try."""

_OVER = (TaskState.landed, TaskState.dropped)
_LEFT = (FarFolder.there, FarFolder.going)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A task that is over and of which something may lie in a folder at its place.

    `group` is what the place remembers of it. `going`: `owner` began to remove it at `since`.
    """

    id: str
    name: str
    place: str
    group: dict[str, Any]
    owner: str
    since: datetime
    going: bool


class LeftoverBook:
    """What is left of tasks at places. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def left(self, place: str | None = None, most: int = 500) -> list[Leftover]:
        """The oldest of them, of one place or of all; those that nobody has begun with first.

        One that its place never had is not among them while it may be asked for again under its
        name: then what was sent of it need not be sent again.
        """
        later = tasks.alias()
        followed = (
            sa.select(sa.literal(1))
            .where(later.c.recipe == tasks.c.recipe, later.c.stage == tasks.c.stage)
            .where(later.c.batch == tasks.c.batch, later.c.attempt >= tasks.c.attempt)
            .where(later.c.id != tasks.c.id, ~name_is_free(later))
            .exists()
        )
        unwanted = tasks.c.heartbeat_at < datetime.now(UTC) - WANTED
        columns = (tasks.c[name] for name in ("id", "name", "place", "sent", "owner"))
        query = (
            sa.select(*columns, tasks.c.heartbeat_at, tasks.c.folder)
            .where(tasks.c.folder.in_(_LEFT), tasks.c.state.in_(_OVER))
            .where(sa.or_(~name_is_free(), followed, unwanted))
            .order_by(tasks.c.folder.desc(), tasks.c.created_at, tasks.c.id)
            .limit(most)
        )
        if place is not None:
            query = query.where(tasks.c.place == place)
        with self._database.reading() as connection:
            return [_leftover(row) for row in connection.execute(query)]

    def take(self, leftovers: Iterable[Leftover], owner: str) -> list[Leftover]:
        """Makes `owner` the one who removes them; gives those that nobody else took meanwhile.

        From here on no task is asked for under their names again.
        """
        move = (
            sa.update(tasks)
            .where(tasks.c.id == sa.bindparam("task"), tasks.c.heartbeat_at == sa.bindparam("seen"))
            .where(tasks.c.folder.in_(_LEFT), tasks.c.state.in_(_OVER))
            .values(folder=FarFolder.going, owner=owner, heartbeat_at=sa.bindparam("at"))
        )
        now = datetime.now(UTC)
        # Always in one order, so that two processes cannot wait for each other.
        wanted = sorted(leftovers, key=lambda each: each.id)

        def work(connection: sa.Connection) -> list[Leftover]:
            return [each for each in wanted if connection.execute(move, seen(each)).rowcount == 1]

        def seen(each: Leftover) -> dict[str, object]:
            # A clock that stands still must not leave the moment as it was seen.
            at = max(now, each.since + timedelta(microseconds=1))
            return {"task": each.id, "seen": each.since, "at": at}

        return self._database.write(work) if wanted else []

    def gone(self, ids: Collection[str]) -> None:
        """Nothing of these tasks lies at their places any more."""
        gone = sa.update(tasks).values(folder=FarFolder.gone)

        def work(connection: sa.Connection) -> None:
            for portion in portions(sorted(ids)):
                connection.execute(gone.where(tasks.c.id.in_(portion)))

        if ids:
            self._database.write(work)


def _leftover(row: Sequence[Any]) -> Leftover:
    id, name, place, sent, owner, since, folder = row
    group = (sent or {}).get("group") or {}
    return Leftover(id, name, place, group, owner, since, going=folder == FarFolder.going)
