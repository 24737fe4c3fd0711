"""The tasks that were sent, and the claims which keep a key from being sent twice."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from ..errors import LedgerError
from .connection import Database, portions
from .tables import batches, claims, pages, tasks
from .task_rows import OPEN_STATES, TASK_COLUMNS, TaskRow, TaskState, insert_task, task_row
from .words import kept_words

__all__ = ["OPEN_STATES", "TaskBook", "TaskRow", "TaskState"]


class TaskBook:
    """What was sent where, and who watches over it. Every call is one transaction.

    The calls that move a task on (`sent`, `ended`, `landed`, `dropped`) may be repeated: they give
    True when this call moved it, False when it was already there or further.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

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
        pages: Sequence[Sequence[str]],
        claims: Collection[str],
        owner: str,
    ) -> TaskRow | None:
        """A new task which holds all the claims, or None with nothing written.

        None means that the name exists or that an open task holds one of the keys. Of several
        processes that ask at once exactly one gets the task.
        """
        now = datetime.now(UTC)
        row = TaskRow(
            id=uuid.uuid4().hex,
            name=name,
            recipe=recipe,
            stage=stage,
            source=source,
            batch=batch,
            place=place,
            state=TaskState.preparing,
            remote_id=None,
            attempt=attempt,
            fingerprints=dict(fingerprints),
            pages=tuple((page_id, sha256) for page_id, sha256 in pages),
            owner=owner,
            message=None,
            created_at=now,
            sent_at=None,
            heartbeat_at=now,
            ended_at=None,
            landed_at=None,
        )
        return row if insert_task(self._database, row, claims) else None

    def free_claims(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that no open task holds."""
        return set(keys) - set(self.claimed(keys))

    def claimed(self, keys: Collection[str]) -> dict[str, str]:
        """The task id by key, for those of the keys that an open task holds."""
        answer: dict[str, str] = {}
        with self._database.reading() as connection:
            for portion in portions(sorted(set(keys))):
                query = sa.select(claims.c.key, claims.c.task_id).where(claims.c.key.in_(portion))
                answer.update(connection.execute(query).all())
        return answer

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
            (TaskState.preparing, TaskState.open),
            state=TaskState.ended,
            ended_at=datetime.now(UTC),
            **said,
        )

    def landed(self, id: str) -> bool:
        """All that the task answered is in the library; its claims are free."""
        return self._move(id, OPEN_STATES, state=TaskState.landed, landed_at=datetime.now(UTC))

    def dropped(self, id: str, message: str) -> bool:
        """Nothing more will come of the task; its claims are free. `message` says why."""
        return self._move(id, OPEN_STATES, state=TaskState.dropped, message=kept_words(message))

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

    def open(
        self,
        recipe: str | None = None,
        stage: str | None = None,
        batch: str | None = None,
        place: str | None = None,
    ) -> list[TaskRow]:
        """The tasks in an open state, oldest first."""
        asked = {"recipe": recipe, "stage": stage, "batch": batch, "place": place}
        where = [tasks.c[name] == value for name, value in asked.items() if value is not None]
        return self._rows(tasks.c.state.in_(OPEN_STATES), *where)

    def get(self, id: str) -> TaskRow | None:
        """The task of that id."""
        return next(iter(self._rows(tasks.c.id == id)), None)

    def by_name(self, name: str) -> TaskRow | None:
        """The task of that name."""
        return next(iter(self._rows(tasks.c.name == name)), None)

    def last_attempt(self, recipe: str, stage: str, batch: str) -> int:
        """The highest attempt so far; 0 when nothing was sent yet."""
        query = sa.select(sa.func.max(tasks.c.attempt)).where(
            tasks.c.recipe == recipe, tasks.c.stage == stage, tasks.c.batch == batch
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

    def _rows(self, *where: sa.ColumnElement[bool]) -> list[TaskRow]:
        query = sa.select(*TASK_COLUMNS).where(*where).order_by(tasks.c.created_at, tasks.c.id)
        with self._database.reading() as connection:
            return [task_row(row) for row in connection.execute(query)]

    def _existing(self, id: str) -> TaskRow:
        task = self.get(id)
        if task is None:
            raise LedgerError(
                f"The ledger {self._database.address.shown} has no task {id}: it was made in "
                "another ledger; see that every process uses the same RECIPES_LEDGER_URL."
            )
        return task

    def _move(self, id: str, start: Collection[TaskState], **values: object) -> bool:
        closes = values["state"] in (TaskState.landed, TaskState.dropped)
        move = sa.update(tasks).where(tasks.c.id == id, tasks.c.state.in_(start)).values(values)

        def work(connection: sa.Connection) -> bool:
            if connection.execute(move).rowcount == 0:
                return False
            if closes:
                connection.execute(sa.delete(claims).where(claims.c.task_id == id))
            return True

        moved = self._database.write(work)
        if not moved:
            self._existing(id)
        return moved
