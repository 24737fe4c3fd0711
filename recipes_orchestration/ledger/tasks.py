"""The tasks that were sent, and the claims which keep a key from being sent twice."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from ..errors import LedgerError
from .connection import among
from .reservations import release
from .tables import batches, claims, pages, tasks
from .task_rows import (
    OPEN_STATES,
    FarFolder,
    NewTask,
    NoSlot,
    TaskHead,
    TaskRow,
    TaskState,
    Within,
    insert_tasks,
    name_is_free,
)
from .task_watch import TaskWatch
from .words import kept_words

__all__ = ["OPEN_STATES", "NewTask", "NoSlot", "TaskBook", "TaskHead", "TaskRow", "TaskState"]

_GOING_ON = (TaskState.preparing, TaskState.open)


class TaskBook(TaskWatch):
    """What was sent where, and who watches over it. Every call is one transaction.

    The calls that move a task on (`sent`, `ended`, `landed`, `dropped`) may be repeated: they give
    True when this call moved it, False when it was already there or further.
    """

    def prepare(
        self,
        name: str,
        recipe: str,
        stage: str,
        source: str,
        batch: str,
        place: str,
        attempt: int,
        fingerprints: Mapping[str, str],
        pages: Sequence[tuple[str, str]],
        claims: Collection[str],
        owner: str,
        *,
        sent: Mapping[str, Any] | None = None,
        calls: Mapping[str, str] | None = None,
        slot: bool = False,
        slots: int | None = None,
    ) -> TaskRow | None:
        """A new task which holds all the claims, or None with nothing written.

        None means that the name exists or that an open task holds one of the keys. Of several
        processes that ask at once exactly one gets the task. Raises `NoSlot` when it takes a slot
        and the place's `slots` are taken.
        """
        task = NewTask(name, fingerprints, pages, claims, sent, calls)
        made = self.prepare_all(
            [task],
            recipe=recipe,
            stage=stage,
            source=source,
            batch=batch,
            place=place,
            attempt=attempt,
            owner=owner,
            slot=slot,
            slots=slots,
        )
        return None if made is None else made[0]

    def prepare_all(
        self,
        group: Sequence[NewTask],
        *,
        recipe: str,
        stage: str,
        source: str,
        batch: str,
        place: str,
        attempt: int,
        owner: str,
        slot: bool = False,
        slots: int | None = None,
        array: str | None = None,
        within: Within | None = None,
    ) -> list[TaskRow] | None:
        """What `prepare` does, for tasks that are sent by one call: all of them or none.

        They take one slot together, under the name of their `array`. `within` is as for
        `insert_tasks`.
        """
        now = datetime.now(UTC)
        rows = [
            TaskRow(
                id=uuid.uuid4().hex,
                name=new.name,
                recipe=recipe,
                stage=stage,
                source=source,
                batch=batch,
                place=place,
                state=TaskState.preparing,
                remote_id=None,
                attempt=attempt,
                fingerprints=dict(new.fingerprints),
                pages=tuple(new.pages),
                owner=owner,
                message=None,
                created_at=now,
                sent_at=None,
                heartbeat_at=now,
                ended_at=None,
                landed_at=None,
                sent=None if new.sent is None else dict(new.sent),
                calls=None if new.calls is None else dict(new.calls),
                slot=slot,
                array=array,
                folder=FarFolder.there if new.folder else None,
                estimate_usd=new.estimate_usd,
            )
            for new in group
        ]
        claimed = [(row, new.claims) for row, new in zip(rows, group, strict=True)]
        return insert_tasks(self._database, claimed, slots, within)

    def free_claims(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that no open task holds."""
        return set(keys).difference(self.claimed(keys))

    def claimed(self, keys: Collection[str]) -> dict[str, str]:
        """The task id by key, for those of the keys that an open task holds."""
        with self._database.reading() as connection:
            # As a rule nothing is open, and thousands of keys need not be handed over.
            if connection.scalar(sa.select(sa.literal(1)).select_from(claims).limit(1)) is None:
                return {}
            query = sa.select(claims.c.key, claims.c.task_id)
            query = query.where(among(connection, claims.c.key, keys))
            return dict(connection.execute(query).all())

    def sent(self, id: str, remote_id: str) -> bool:
        """The place has taken the task and calls it `remote_id`.

        Raises `LedgerError` when the task has another remote id or was dropped meanwhile: then
        something runs at the place that nobody waits for.
        """
        now = datetime.now(UTC)
        start = (TaskState.preparing,)
        if self._move(id, start, state=TaskState.open, remote_id=remote_id, sent_at=now):
            return True
        task = self._existing(id)
        if task.remote_id != remote_id or task.state == TaskState.dropped:
            raise LedgerError(
                f"The task {task.name} is {task.state} with the id {task.remote_id} and was sent "
                f"to {task.place} again as {remote_id}: cancel {remote_id} there."
            )
        return False

    def ended(self, id: str, message: str | None = None) -> bool:
        """The place works on the task no more. `message` is what it said, if anything."""
        said = {} if message is None else {"message": kept_words(message)}
        return self._move(
            id,
            _GOING_ON,
            state=TaskState.ended,
            ended_at=datetime.now(UTC),
            **said,
        )

    def ended_many(self, said: Mapping[str, str]) -> None:
        """What `ended` does, for many tasks in one transaction: the message by the task's id."""
        if not said:
            return
        move = (
            sa.update(tasks)
            .where(tasks.c.id == sa.bindparam("task"))
            .where(sa.or_(*(tasks.c.state == state for state in _GOING_ON)))
            .values(
                state=TaskState.ended,
                ended_at=sa.bindparam("at"),
                message=sa.func.coalesce(sa.bindparam("said", type_=sa.Text()), tasks.c.message),
            )
        )
        now = datetime.now(UTC)
        # Always in one order, so that two processes cannot wait for each other.
        rows = [
            {"task": id, "at": now, "said": kept_words(words) if words else None}
            for id, words in sorted(said.items())
        ]
        self._database.write(lambda connection: connection.execute(move, rows))

    def landed(self, id: str) -> bool:
        """All that the task answered is in the library; its claims are free."""
        return self._move(id, OPEN_STATES, state=TaskState.landed, landed_at=datetime.now(UTC))

    def dropped(self, id: str, message: str) -> bool:
        """Nothing more will come of the task; its claims are free. `message` says why."""
        return self._move(id, OPEN_STATES, state=TaskState.dropped, message=kept_words(message))

    def remote_ids(self, place: str, since: datetime) -> set[str]:
        """What the place called the tasks that were asked for since then."""
        query = sa.select(tasks.c.remote_id).where(
            tasks.c.place == place, tasks.c.remote_id.is_not(None), tasks.c.created_at >= since
        )
        with self._database.reading() as connection:
            return {str(id) for id in connection.scalars(query)}

    def by_name(self, name: str) -> TaskRow | None:
        """The task of that name."""
        return next(iter(self._rows(tasks.c.name == name)), None)

    def last_attempt(self, recipe: str, stage: str, batch: str) -> int:
        """The highest attempt that a place answered for or may yet; 0 when there is none."""
        query = (
            sa.select(sa.func.max(tasks.c.attempt))
            .where(~name_is_free())
            .where(tasks.c.recipe == recipe, tasks.c.stage == stage, tasks.c.batch == batch)
        )
        with self._database.reading() as connection:
            return connection.scalar(query) or 0

    def of_page(self, page_id: str, source: str | None = None) -> list[TaskRow]:
        """Every task that the page was sent with, oldest first."""
        where = [pages.c.page_id == page_id]
        if source is not None:
            where.append(pages.c.source == source)
        # A page stays in its batch, so only that batch's few tasks need be looked into.
        batch = (
            sa.select(sa.literal(1))
            .join_from(pages, batches, pages.c.batch_id == batches.c.id)
            .where(batches.c.source == tasks.c.source, batches.c.key == tasks.c.batch, *where)
        )
        return [
            task
            for task in self._rows(batch.exists())
            if any(sent_page == page_id for sent_page, _ in task.pages)
        ]

    def _move(self, id: str, start: Collection[TaskState], **values: object) -> bool:
        closes = values["state"] in (TaskState.landed, TaskState.dropped)
        move = sa.update(tasks).where(tasks.c.id == id, tasks.c.state.in_(start)).values(values)

        def work(connection: sa.Connection) -> bool:
            if connection.execute(move).rowcount == 0:
                return False
            if closes:
                connection.execute(sa.delete(claims).where(claims.c.task_id == id))
                release(connection, id)
            return True

        moved = self._database.write(work)
        if not moved:
            self._existing(id)
        return moved
