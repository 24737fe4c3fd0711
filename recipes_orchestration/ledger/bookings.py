"""What each task cost: booked as it lands, and once however often it does."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from .connection import Database, insert_into
from .reservations import reserved_for, settle
from .tables import bookings, tasks

__all__ = ["Booking", "BookingBook", "Past"]


@dataclass(frozen=True, slots=True)
class Booking:
    """A task's bill in US dollars, by what it answered.

    `landed_usd` is for results, `wasted_usd` for answers that were billed and are no results.
    `mode` is `batch`, `plain` or `job`, `basis` where the price comes from. `lines` counts
    outcomes. `saved_usd` is what plain calls would have cost more.
    """

    task_id: str
    recipe: str
    step: str
    batch: str
    place: str
    model: str
    mode: str
    basis: str
    landed_usd: Decimal
    wasted_usd: Decimal
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    lines: dict[str, int]
    booked_at: datetime
    saved_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """A bill with what its task was sent with: the fingerprints by step, and `Task.sent`."""

    tokens_in: int
    tokens_out: int
    lines: dict[str, int]
    fingerprints: dict[str, str]
    sent: dict[str, Any] | None


_COLUMNS = tuple(bookings.c[field.name] for field in fields(Booking))


def _usd(booking: Booking) -> Decimal:
    return booking.landed_usd + booking.wasted_usd


class BookingBook:
    """The bills of tasks. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def book(self, booking: Booking, *, final: bool = True) -> bool:
        """Books what a task cost so far, in the place of what it cost before.

        What is reserved for it shrinks by as much, and is nothing once it is `final`. False, with
        no booking changed, when the same is booked already.
        """
        values = asdict(booking)

        def work(connection: sa.Connection) -> bool:
            reserved = reserved_for(connection, booking.task_id)
            query = sa.select(*_COLUMNS).where(bookings.c.task_id == booking.task_id)
            row = connection.execute(query).first()
            before = None if row is None else Booking(*row)
            if reserved is not None:
                more = _usd(booking) - (_usd(before) if before else 0)
                settle(connection, booking.task_id, Decimal(0) if final else reserved - more)
            if before is not None and replace(booking, booked_at=before.booked_at) == before:
                return False
            insert = insert_into(connection, bookings).values(values)
            key = [bookings.c.task_id]
            connection.execute(insert.on_conflict_do_update(index_elements=key, set_=values))
            return True

        return self._database.write(work)

    def of(self, task_id: str) -> Booking | None:
        """The task's bill, if it is booked."""
        return next(iter(self._rows(bookings.c.task_id == task_id)), None)

    def all(
        self, recipe: str | None = None, step: str | None = None, since: datetime | None = None
    ) -> list[Booking]:
        """The bills of a recipe, of one of its steps, or all, oldest first."""
        asked = {"recipe": recipe, "step": step}
        where = [bookings.c[name] == value for name, value in asked.items() if value is not None]
        if since is not None:
            where.append(bookings.c.booked_at >= since.astimezone(UTC))
        return self._rows(*where)

    def last(self, recipe: str, step: str, place: str, most: int = 8) -> list[Past]:
        """The last bills of the step at the place, the newest first."""
        newest = (
            sa.select(bookings.c.task_id, bookings.c.booked_at)
            .where(bookings.c.recipe == recipe, bookings.c.step == step, bookings.c.place == place)
            .order_by(bookings.c.booked_at.desc(), bookings.c.task_id)
            .limit(most)
            .subquery()
        )
        billed = (bookings.c[name] for name in ("tokens_in", "tokens_out", "lines"))
        query = (
            sa.select(*billed, tasks.c.fingerprints, tasks.c.sent)
            .join(newest, newest.c.task_id == bookings.c.task_id)
            .join(tasks, tasks.c.id == bookings.c.task_id)
            .order_by(newest.c.booked_at.desc(), newest.c.task_id)
        )
        with self._database.reading() as connection:
            return [Past(*row) for row in connection.execute(query)]

    def estimates(self, since: datetime) -> dict[str, Decimal]:
        """What the tasks that were booked since then were thought to cost, by their ids."""
        query = (
            sa.select(tasks.c.id, tasks.c.estimate_usd)
            .join(bookings, bookings.c.task_id == tasks.c.id)
            .where(bookings.c.booked_at >= since.astimezone(UTC))
            .where(tasks.c.estimate_usd.is_not(None))
        )
        with self._database.reading() as connection:
            return dict(connection.execute(query).all())

    def _rows(self, *where: sa.ColumnElement[bool]) -> list[Booking]:
        query = sa.select(*_COLUMNS).where(*where)
        query = query.order_by(bookings.c.booked_at, bookings.c.task_id)
        with self._database.reading() as connection:
            return [Booking(*row) for row in connection.execute(query)]
