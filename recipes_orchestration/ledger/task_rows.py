"""What the ledger tells of a task, and how one is written with its claims."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from .connection import Database, insert_into
from .tables import claims, tasks

__all__ = [
    "OPEN_STATES",
    "TASK_COLUMNS",
    "TaskRow",
    "TaskState",
    "insert_task",
    "task_row",
]


class TaskState(StrEnum):
    """Where a task stands. The first three are open: their keys are claimed."""

    preparing = "preparing"
    open = "open"
    ended = "ended"
    landed = "landed"
    dropped = "dropped"


OPEN_STATES = (TaskState.preparing, TaskState.open, TaskState.ended)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One thing sent. `pages` are (page_id, sha256) and `fingerprints` are by step name.

    `remote_id` is the place's name for it, None until the place has answered. `owner` is who
    watches over it, and said so last at `heartbeat_at`.
    """

    id: str
    name: str
    recipe: str
    stage: str
    source: str
    batch: str
    place: str
    state: TaskState
    remote_id: str | None
    attempt: int
    fingerprints: dict[str, str]
    pages: tuple[tuple[str, str], ...]
    owner: str
    message: str | None
    created_at: datetime
    sent_at: datetime | None
    heartbeat_at: datetime | None
    ended_at: datetime | None
    landed_at: datetime | None


TASK_COLUMNS = tuple(tasks.c[field.name] for field in fields(TaskRow))
"""The columns of a `TaskRow` in its order."""


def task_row(row: Sequence[Any]) -> TaskRow:
    """The task of a row of `TASK_COLUMNS`."""
    task = dict(zip((column.name for column in TASK_COLUMNS), row, strict=True))
    task["state"] = TaskState(task["state"])
    task["pages"] = tuple((page_id, sha256) for page_id, sha256 in task["pages"])
    return TaskRow(**task)


class _Taken(Exception):
    pass


def insert_task(database: Database, task: TaskRow, keys: Collection[str]) -> bool:
    """Writes the task and its claims, or nothing when its name or one of the keys is taken."""
    # Always in one order, so that two which want the same keys cannot wait for each other.
    wanted = [{"key": key, "task_id": task.id} for key in sorted(set(keys))]

    def work(connection: sa.Connection) -> None:
        new = insert_into(connection, tasks).values(asdict(task)).on_conflict_do_nothing()
        if connection.execute(new).rowcount != 1:
            raise _Taken
        if not wanted:
            return
        connection.execute(insert_into(connection, claims).on_conflict_do_nothing(), wanted)
        # Counted anew: what a driver reports for many rows at once differs between them.
        mine = sa.select(sa.func.count()).where(claims.c.task_id == task.id)
        if connection.scalar(mine) != len(wanted):
            raise _Taken

    try:
        database.write(work)
    except _Taken:
        return False
    return True
