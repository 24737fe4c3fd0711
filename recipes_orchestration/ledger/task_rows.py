"""What the ledger tells of a task, and how one is written with its claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from .connection import Database, insert_into, listed, one_at_a_time
from .tables import claims, task_pages, tasks

__all__ = [
    "HEAD_COLUMNS",
    "OPEN_STATES",
    "FarFolder",
    "NewTask",
    "NoSlot",
    "TaskHead",
    "TaskRow",
    "TaskState",
    "Within",
    "insert_tasks",
    "name_is_free",
    "select_tasks",
    "slots_taken",
    "task_head",
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


class FarFolder(StrEnum):
    """What lies of a task in a folder at its place: perhaps something, until it is removed."""

    there = "there"
    going = "going"
    gone = "gone"


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One thing sent. `pages` are (page_id, sha256) and `fingerprints` are by step name.
    `folder` is a `FarFolder`, None where nothing lies at its place.

    `remote_id` is the place's name for it, None until the place has answered. `owner` is who
    watches over it, and said so last at `heartbeat_at`. `sent` is what landing needs to know of
    the steps as they were, `calls` the id of each page's call. `slot`: it takes one of the place's
    slots. `stopped` says why its end was asked for, `held` why it waits for a person, `fetches`
    how often its results could not be fetched. `array` is the group that it was sent in, `report`
    what the far side told of its work. `estimate_usd` is what it was thought to cost before it was
    sent, None when nobody could tell.
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
    sent: dict[str, Any] | None = field(default=None, repr=False)
    calls: dict[str, str] | None = field(default=None, repr=False)
    slot: bool = False
    stopped: str | None = None
    stopped_at: datetime | None = None
    held: str | None = None
    fetches: int = 0
    array: str | None = None
    report: dict[str, Any] | None = field(default=None, repr=False)
    folder: str | None = None
    estimate_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be written: its `claims` are the keys that nobody else may send while it is open.

    `folder`: something of it will lie at its place. The rest is as in `TaskRow`.
    """

    name: str
    fingerprints: Mapping[str, str]
    pages: Sequence[tuple[str, str]]
    claims: Collection[str]
    sent: Mapping[str, Any] | None = None
    calls: Mapping[str, str] | None = None
    folder: bool = False
    estimate_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class TaskHead:
    """A task without its pages: what a look over thousands of open ones needs."""

    id: str
    name: str
    recipe: str
    stage: str
    source: str
    batch: str
    place: str
    state: TaskState
    remote_id: str | None
    owner: str
    created_at: datetime
    sent_at: datetime | None
    heartbeat_at: datetime | None
    ended_at: datetime | None
    slot: bool
    stopped: str | None
    stopped_at: datetime | None
    held: str | None
    array: str | None = None
    held_at: datetime | None = None


HEAD_COLUMNS = tuple(tasks.c[each.name] for each in fields(TaskHead))
"""The columns of a `TaskHead` in its order."""


_PAGE_FIELDS = ("pages", "calls")

_TASK_COLUMNS: tuple[sa.ColumnElement[Any], ...] = tuple(
    (task_pages if each.name in _PAGE_FIELDS else tasks).c[each.name] for each in fields(TaskRow)
)


def select_tasks() -> sa.Select[*tuple[Any, ...]]:
    """A query for tasks whole, as rows for `task_row`."""
    return sa.select(*_TASK_COLUMNS).join_from(tasks, task_pages)


def task_row(row: Sequence[Any]) -> TaskRow:
    """The task of a row of `select_tasks`."""
    task = dict(zip((each.name for each in fields(TaskRow)), row, strict=True))
    task["state"] = TaskState(task["state"])
    task["pages"] = tuple(map(tuple, task["pages"]))
    return TaskRow(**task)


def task_head(row: Sequence[Any]) -> TaskHead:
    """The task of a row of `HEAD_COLUMNS`."""
    head = dict(zip((column.name for column in HEAD_COLUMNS), row, strict=True))
    head["state"] = TaskState(head["state"])
    return TaskHead(**head)


Within = Callable[[sa.Connection, Sequence[TaskRow]], None]
"""What is to be written together with tasks, by the connection of their transaction."""


class NoSlot(Exception):
    """All slots of the place are taken by open tasks."""


class _Taken(Exception):
    pass


def insert_tasks(
    database: Database,
    group: Sequence[tuple[TaskRow, Collection[str]]],
    slots: int | None = None,
    within: Within | None = None,
) -> list[TaskRow] | None:
    """Writes tasks with their claims, all or none; None when a name or a key is taken.

    The name of a task that was dropped before any place answered for it is free again, unless its
    folder there was removed: the row keeps the moment at which it was first asked for. Raises
    `NoSlot` when the tasks take a slot, one for all of them, and `slots` are taken at their place.
    `within` is called last in the same transaction, perhaps more than once; what it raises undoes
    it all.
    """

    def work(connection: sa.Connection) -> list[TaskRow]:
        first = group[0][0]
        if first.slot and slots is not None:
            one_at_a_time(connection, "recipes slots", first.place)
            if slots_taken(connection, first.place) >= slots:
                raise NoSlot
        rows = [_insert(connection, task, keys) for task, keys in group]
        if within is not None:
            within(connection, rows)
        return rows

    try:
        return database.write(work)
    except _Taken:
        return None


def _insert(connection: sa.Connection, task: TaskRow, keys: Collection[str]) -> TaskRow:
    row = replace(task, created_at=_first_asked(connection, task))
    new = insert_into(connection, tasks).values(_values(row)).on_conflict_do_nothing()
    if connection.execute(new).rowcount != 1:
        raise _Taken
    pages = {"task_id": row.id, "pages": row.pages, "calls": row.calls}
    connection.execute(sa.insert(task_pages).values(pages))
    # Always in one order, so that two which want the same keys cannot wait for each other.
    wanted = sorted(dict.fromkeys(keys))
    if not wanted:
        return row
    # In one statement, as each of thousands would take as long by itself as its row. SQLite wants
    # a condition between the rows and what is to be done about a conflict.
    rows = sa.select(listed(connection, wanted).c.value, sa.literal(task.id)).where(sa.true())
    claim = insert_into(connection, claims).from_select(["key", "task_id"], rows)
    connection.execute(claim.on_conflict_do_nothing())
    mine = sa.select(sa.func.count()).where(claims.c.task_id == task.id)
    if connection.scalar(mine) != len(wanted):
        raise _Taken
    return row


def _values(task: TaskRow) -> dict[str, Any]:
    # Not `asdict`, which would copy each page of thousands.
    names = (each.name for each in fields(task) if each.name not in _PAGE_FIELDS)
    return {name: getattr(task, name) for name in names}


def slots_taken(connection: sa.Connection, place: str) -> int:
    """How many slots of the place are taken by open tasks; those of one array share theirs."""
    shared = sa.func.count(sa.distinct(sa.func.coalesce(tasks.c.array, tasks.c.id)))
    taken = sa.select(shared).where(
        tasks.c.place == place, tasks.c.slot, tasks.c.state.in_(OPEN_STATES)
    )
    return connection.scalar(taken) or 0


def name_is_free(columns: sa.FromClause = tasks) -> sa.ColumnElement[bool]:
    """Whether a task may be asked for again under its name: no place ever answered for it.

    Once its folder is being removed it may not: whoever sends a task of that name next must not
    have its files removed by somebody who has begun to do so before.
    """
    folder = columns.c.folder
    return sa.and_(
        columns.c.state == TaskState.dropped,
        columns.c.remote_id.is_(None),
        sa.or_(folder.is_(None), folder == FarFolder.there),
    )


def _first_asked(connection: sa.Connection, task: TaskRow) -> datetime:
    free = sa.and_(tasks.c.name == task.name, name_is_free())
    mine = sa.select(tasks.c.id).where(free).scalar_subquery()
    connection.execute(sa.delete(task_pages).where(task_pages.c.task_id == mine))
    unsent = sa.delete(tasks).where(free)
    return connection.scalar(unsent.returning(tasks.c.created_at)) or task.created_at
