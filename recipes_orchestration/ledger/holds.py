"""Pages that failed at a step, and those of them that wait for a person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

import sqlalchemy as sa

from .connection import Database, insert_into, portions
from .tables import holds
from .words import kept_words

__all__ = ["Failure", "HeldFor", "HoldBook", "HoldRow"]


@dataclass(frozen=True, slots=True)
class HoldRow:
    """One page's failures at one step. `held`: it waits for a person and is not tried again.

    `reason` is a word for the kind of failure, `words` what was said about the last one.
    `attempts` counts them, `since` is the first and `updated_at` the last. `task` names the task
    that the last one was counted for.
    """

    recipe: str
    step: str
    source: str
    batch: str
    page_id: str
    key: str
    reason: str
    words: str
    attempts: int
    held: bool
    since: datetime
    updated_at: datetime
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt; `hold` makes the page wait for a person.

    `task` is the name of the task it was made in: told again of the same task, it is not counted.
    """

    recipe: str
    step: str
    source: str
    batch: str
    page_id: str
    key: str
    reason: str
    words: str
    hold: bool
    task: str | None = None


@dataclass(frozen=True, slots=True)
class HeldFor:
    """How many pages of a step, in how many batches, are held for one reason, and one of them."""

    recipe: str
    step: str
    reason: str
    pages: int
    batches: int
    page_id: str
    words: str


_COLUMNS = tuple(holds.c[field.name] for field in fields(HoldRow))
_SAME = (holds.c.recipe, holds.c.step, holds.c.source, holds.c.page_id, holds.c.key)


class HoldBook:
    """What failed and what waits. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def failed(
        self,
        recipe: str,
        step: str,
        source: str,
        batch: str,
        page_id: str,
        key: str,
        reason: str,
        words: str,
        hold: bool,
    ) -> HoldRow:
        """Counts one failed attempt and gives where the page stands now."""
        failure = Failure(recipe, step, source, batch, page_id, key, reason, words, hold)
        return self.failed_many([failure])[0]

    def failed_many(self, failures: Sequence[Failure]) -> list[HoldRow]:
        """Counts failed attempts; gives where each page stands now, in their order.

        A held page stays held, whatever its later failures ask for, until it is cleared.
        """
        if not failures:
            return []
        now = datetime.now(UTC)
        merged: dict[tuple[str, ...], dict[str, object]] = {}
        for failure in failures:
            same = _identity(failure)
            before = merged.get(same, {"attempts": 0, "held": False})
            merged[same] = {
                "recipe": failure.recipe,
                "step": failure.step,
                "source": failure.source,
                "batch": failure.batch,
                "page_id": failure.page_id,
                "key": failure.key,
                "reason": kept_words(failure.reason),
                "words": kept_words(failure.words),
                "attempts": int(str(before["attempts"])) + 1,
                "held": bool(before["held"]) or failure.hold,
                "since": now,
                "updated_at": now,
                "task": failure.task,
            }
        # Always in one order, so that two processes cannot wait for each other.
        rows = [merged[same] for same in sorted(merged)]

        def work(connection: sa.Connection) -> dict[tuple[str, ...], HoldRow]:
            insert = insert_into(connection, holds)
            new = insert.excluded
            again = sa.and_(holds.c.task.is_not(None), holds.c.task == new.task)
            count = insert.on_conflict_do_update(
                index_elements=_SAME,
                set_={
                    "batch": new.batch,
                    "reason": new.reason,
                    "words": new.words,
                    "attempts": holds.c.attempts + sa.case((again, 0), else_=new.attempts),
                    "held": sa.or_(holds.c.held, new.held),
                    "updated_at": new.updated_at,
                    "task": new.task,
                },
            )
            connection.execute(count, rows)
            standing: dict[tuple[str, ...], HoldRow] = {}
            for portion in portions(sorted({failure.key for failure in failures})):
                query = sa.select(*_COLUMNS).where(holds.c.key.in_(portion))
                for row in connection.execute(query):
                    hold = HoldRow(*row)
                    standing[_identity(hold)] = hold
            return standing

        standing = self._database.write(work)
        return [standing[_identity(failure)] for failure in failures]

    def held(
        self,
        recipe: str | None = None,
        step: str | None = None,
        source: str | None = None,
        batch: str | None = None,
        page_id: str | None = None,
    ) -> list[HoldRow]:
        """The pages that wait for a person, by recipe, source, batch, page and step."""
        query = (
            sa.select(*_COLUMNS)
            .where(holds.c.held)
            .where(*_asked(recipe=recipe, step=step, source=source, batch=batch, page_id=page_id))
            .order_by(holds.c.recipe, holds.c.source, holds.c.batch, holds.c.page_id, holds.c.id)
        )
        with self._database.reading() as connection:
            return [HoldRow(*row) for row in connection.execute(query)]

    def reasons(self) -> list[HeldFor]:
        """What pages are held for, by recipe, step and reason; the first page stands for all."""
        by_reason = (holds.c.recipe, holds.c.step, holds.c.reason)
        groups = (
            sa.select(
                sa.func.min(holds.c.id).label("first"),
                sa.func.count().label("pages"),
                sa.func.count(sa.distinct(holds.c.batch)).label("batches"),
            )
            .where(holds.c.held)
            .group_by(*by_reason)
            .subquery()
        )
        query = (
            sa.select(*by_reason, groups.c.pages, groups.c.batches, holds.c.page_id, holds.c.words)
            .join(groups, groups.c.first == holds.c.id)
            .order_by(*by_reason)
        )
        with self._database.reading() as connection:
            return [HeldFor(*row) for row in connection.execute(query)]

    def attempts_of(
        self, recipe: str, source: str, batch: str
    ) -> dict[tuple[str, str, str], HoldRow]:
        """By (page_id, step, key), every page of the batch that failed, whether held or not."""
        query = sa.select(*_COLUMNS).where(*_asked(recipe=recipe, source=source, batch=batch))
        with self._database.reading() as connection:
            rows = [HoldRow(*row) for row in connection.execute(query)]
        return {(row.page_id, row.step, row.key): row for row in rows}

    def clear(
        self,
        recipe: str,
        step: str | None = None,
        batch: str | None = None,
        page_id: str | None = None,
        reason: str | None = None,
        keep: str | None = None,
    ) -> int:
        """Forgets holds and their attempts, so that the pages are tried anew; gives how many.

        Those whose reason is `keep` stay.
        """
        forget = sa.delete(holds).where(
            *_asked(recipe=recipe, step=step, batch=batch, page_id=page_id, reason=reason)
        )
        if keep is not None:
            forget = forget.where(holds.c.reason != keep)
        return self._database.write(lambda connection: connection.execute(forget).rowcount)

    def landed_since(self, keys: Collection[str]) -> None:
        """Forgets the failures of keys that have landed after all."""

        def work(connection: sa.Connection) -> None:
            for portion in portions(sorted(set(keys))):
                connection.execute(sa.delete(holds).where(holds.c.key.in_(portion)))

        if keys:
            self._database.write(work)


def _identity(row: Failure | HoldRow) -> tuple[str, ...]:
    return (row.recipe, row.step, row.source, row.page_id, row.key)


def _asked(**values: str | None) -> list[sa.ColumnElement[bool]]:
    return [holds.c[name] == value for name, value in values.items() if value is not None]
