"""What open tasks may still cost at most: promised to a place before it is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from .connection import Database, one_at_a_time
from .tables import bookings, reservations, tasks
from .task_rows import OPEN_STATES

__all__ = [
    "Committed",
    "Purse",
    "Reservation",
    "ReservationBook",
    "alone",
    "committed_within",
    "release",
    "reserve",
    "reserved_for",
    "settle",
]


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that an open task may still cost, in US dollars."""

    task_id: str
    recipe: str
    step: str
    batch: str
    place: str
    model: str
    usd: Decimal
    reserved_at: datetime


@dataclass(frozen=True, slots=True)
class Purse:
    """What money is counted together: of a recipe or of all, booked `since` then or ever.

    What is reserved counts in any case: it will be booked later than any time that has been.
    """

    recipe: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """Dollars that were paid and that may yet have to be.

    `unknown` counts the open tasks for which nothing was reserved, as there was no cap then.
    """

    booked: Decimal
    reserved: Decimal
    unknown: int = 0


_COLUMNS = tuple(reservations.c[field.name] for field in fields(Reservation))


class ReservationBook:
    """What is reserved. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, recipe: str | None = None) -> list[Reservation]:
        """What is reserved for the open tasks, of one recipe or of all, oldest first."""
        query = sa.select(*_COLUMNS).order_by(reservations.c.reserved_at, reservations.c.task_id)
        if recipe is not None:
            query = query.where(reservations.c.recipe == recipe)
        with self._database.reading() as connection:
            return [Reservation(*row) for row in connection.execute(query)]

    def committed(self, purse: Purse, places: Collection[str] = ()) -> Committed:
        """What is booked and reserved; `places` are those that are paid."""
        with self._database.reading() as connection:
            return committed_within(connection, purse, places)

    def add(self, more: Reservation, within: Callable[[sa.Connection], None]) -> None:
        """Reserves so much more for an open task. `within` is called last in the transaction, and
        what it raises takes it back.
        """

        def work(connection: sa.Connection) -> None:
            alone(connection)
            reserved = reserved_for(connection, more.task_id)
            if reserved is None:
                reserve(connection, [more])
            else:
                settle(connection, more.task_id, reserved + more.usd)
            within(connection)

        self._database.write(work)

    def lower(self, task_id: str, usd: Decimal) -> None:
        """So much less is reserved for the task."""

        def work(connection: sa.Connection) -> None:
            reserved = reserved_for(connection, task_id)
            if reserved is not None:
                settle(connection, task_id, reserved - usd)

        self._database.write(work)


def alone(connection: sa.Connection) -> None:
    """Until the transaction ends no other reserves anything."""
    one_at_a_time(connection, "recipes spend")


def committed_within(
    connection: sa.Connection, purse: Purse, places: Collection[str] = ()
) -> Committed:
    """What `ReservationBook.committed` gives, in the transaction of the connection."""
    # Two sums: a sum of two columns would not come back as dollars.
    landed = sa.select(sa.func.sum(bookings.c.landed_usd))
    wasted = sa.select(sa.func.sum(bookings.c.wasted_usd))
    reserved = sa.select(sa.func.sum(reservations.c.usd))
    bare = (
        sa.select(sa.func.count())
        .where(tasks.c.state.in_(OPEN_STATES), tasks.c.place.in_(sorted(places)))
        .where(~sa.exists().where(reservations.c.task_id == tasks.c.id))
    )
    if purse.recipe is not None:
        landed = landed.where(bookings.c.recipe == purse.recipe)
        wasted = wasted.where(bookings.c.recipe == purse.recipe)
        reserved = reserved.where(reservations.c.recipe == purse.recipe)
        bare = bare.where(tasks.c.recipe == purse.recipe)
    if purse.since is not None:
        landed = landed.where(bookings.c.booked_at >= purse.since)
        wasted = wasted.where(bookings.c.booked_at >= purse.since)
    # In one statement: between two of them a task could be booked that the first saw reserved.
    asked = (landed, wasted, reserved, bare)
    row = connection.execute(sa.select(*(each.scalar_subquery() for each in asked))).one()
    values: list[Any] = list(row)
    *usd, unknown = values
    paid, lost, promised = (each or Decimal(0) for each in usd)
    return Committed(paid + lost, promised, unknown if places else 0)


def reserve(connection: sa.Connection, rows: Sequence[Reservation]) -> None:
    """Writes what tasks may cost at most, in the transaction that writes the tasks."""
    if rows:
        connection.execute(sa.insert(reservations), [asdict(row) for row in rows])


def reserved_for(connection: sa.Connection, task_id: str) -> Decimal | None:
    """What is reserved for the task; until the transaction ends no other changes it."""
    query = sa.select(reservations.c.usd).where(reservations.c.task_id == task_id)
    return connection.scalar(query.with_for_update())


def settle(connection: sa.Connection, task_id: str, usd: Decimal) -> None:
    """From now on so much is reserved for the task, if anything is."""
    left = sa.update(reservations).where(reservations.c.task_id == task_id)
    connection.execute(left.values(usd=max(Decimal(0), usd)))


def release(connection: sa.Connection, task_id: str) -> None:
    """Nothing more will be paid for the task."""
    connection.execute(sa.delete(reservations).where(reservations.c.task_id == task_id))
