"""What each task cost, booked once however often it lands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal

import sqlalchemy as sa

from .connection import Database, insert_into
from .tables import bookings

__all__ = ["Booking", "BookingBook"]


@dataclass(frozen=True, slots=True)
class Booking:
    """A task's bill in US dollars, by what it answered.

    `landed_usd` is for results, `wasted_usd` for answers that were billed and are no results.
    `mode` is `batch` or `plain`, `basis` where the price comes from. `lines` counts outcomes.
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


_COLUMNS = tuple(bookings.c[field.name] for field in fields(Booking))


class BookingBook:
    """The bills of tasks. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def book(self, booking: Booking) -> bool:
        """Books a task's bill; False, with nothing changed, when it is booked already."""

        def work(connection: sa.Connection) -> bool:
            new = insert_into(connection, bookings).values(asdict(booking))
            return connection.execute(new.on_conflict_do_nothing()).rowcount == 1

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

    def _rows(self, *where: sa.ColumnElement[bool]) -> list[Booking]:
        query = sa.select(*_COLUMNS).where(*where)
        query = query.order_by(bookings.c.booked_at, bookings.c.task_id)
        with self._database.reading() as connection:
            return [Booking(*row) for row in connection.execute(query)]
