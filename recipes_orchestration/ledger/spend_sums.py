"""What was paid and is reserved, summed up by the database: never row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from .connection import Database
from .tables import bookings, reservations

__all__ = ["KEYS", "SpendBook", "SpendSum"]

KEYS = ("recipe", "step", "place", "model", "price", "day")
"""What sums can be told apart by. `price` is where the price comes from, `day` is of UTC."""

_BOOKED = ("landed_usd", "wasted_usd", "saved_usd")

RESERVED = "reserved"
"""The price of what is open: no answer has been priced yet."""


@dataclass
class SpendSum:
    """Dollars and tokens of tasks that are alike. `key` has the values that they share.

    What is booked is `landed_usd` for results and `wasted_usd` for answers that are none.
    """

    key: tuple[str, ...]
    tasks: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    landed_usd: Decimal = Decimal(0)
    wasted_usd: Decimal = Decimal(0)
    saved_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)

    @property
    def booked_usd(self) -> Decimal:
        """All that was paid."""
        return self.landed_usd + self.wasted_usd

    def add(self, other: SpendSum) -> None:
        """Adds the other sum to this one."""
        self.tasks += other.tasks
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.landed_usd += other.landed_usd
        self.wasted_usd += other.wasted_usd
        self.saved_usd += other.saved_usd
        self.reserved_usd += other.reserved_usd


class SpendBook:
    """Sums of the bookings and reservations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def sums(self, by: Sequence[str], recipe: str | None = None) -> list[SpendSum]:
        """The sums by these of `KEYS`, in their order; of one recipe or of all."""
        with self._database.reading() as connection:
            found = {each.key: each for each in _booked(connection, by, recipe)}
            for each in _reserved(connection, by, recipe):
                found.setdefault(each.key, SpendSum(each.key)).add(each)
        return [found[key] for key in sorted(found)]

    def of_batch(self, recipe: str, step: str, batch: str) -> SpendSum | None:
        """All that a step of a batch cost and may yet; None when nothing was ever paid for it."""
        where = {"recipe": recipe, "step": step, "batch": batch}
        booked = sa.select(
            sa.func.count(),
            *(sa.func.sum(bookings.c[name]) for name in ("tokens_in", "tokens_out", *_BOOKED)),
        ).where(*(bookings.c[name] == value for name, value in where.items()))
        held = sa.select(sa.func.count(), sa.func.sum(reservations.c.usd)).where(
            *(reservations.c[name] == value for name, value in where.items())
        )
        with self._database.reading() as connection:
            paid: list[Any] = list(connection.execute(booked).one())
            out, reserved = connection.execute(held).one()
        if not paid[0] and not out:
            return None
        usd = [each or Decimal(0) for each in (*paid[3:], reserved)]
        return SpendSum((), paid[0], int(paid[1] or 0), int(paid[2] or 0), *usd)


def _booked(connection: sa.Connection, by: Sequence[str], recipe: str | None) -> list[SpendSum]:
    columns = {
        "recipe": bookings.c.recipe,
        "step": bookings.c.step,
        "place": bookings.c.place,
        "model": bookings.c.model,
        "price": bookings.c.basis,
        "day": _day(connection, bookings.c.booked_at),
    }
    keys = [columns[name] for name in by]
    query = sa.select(
        *keys,
        sa.func.count(),
        sa.func.sum(bookings.c.tokens_in),
        sa.func.sum(bookings.c.tokens_out),
        *(sa.func.sum(bookings.c[name]) for name in _BOOKED),
    ).group_by(*keys)
    if recipe is not None:
        query = query.where(bookings.c.recipe == recipe)
    cut = len(keys)
    return [
        SpendSum(
            tuple(str(value) for value in row[:cut]),
            row[cut],
            int(row[cut + 1] or 0),
            int(row[cut + 2] or 0),
            *(usd or Decimal(0) for usd in row[cut + 3 :]),
        )
        for row in connection.execute(query)
        if row[cut]
    ]


def _reserved(connection: sa.Connection, by: Sequence[str], recipe: str | None) -> list[SpendSum]:
    columns = {
        "recipe": reservations.c.recipe,
        "step": reservations.c.step,
        "place": reservations.c.place,
        "model": reservations.c.model,
        "price": sa.literal(RESERVED),
        "day": _day(connection, reservations.c.reserved_at),
    }
    keys = [columns[name] for name in by if name != "price"]
    query = sa.select(*keys, sa.func.sum(reservations.c.usd)).group_by(*keys)
    query = query.where(reservations.c.usd > Decimal(0))
    if recipe is not None:
        query = query.where(reservations.c.recipe == recipe)
    sums: list[SpendSum] = []
    for row in connection.execute(query):
        if row[-1] is not None:
            values = iter(row[:-1])
            key = tuple(RESERVED if name == "price" else str(next(values)) for name in by)
            sums.append(SpendSum(key, reserved_usd=row[-1]))
    return sums


def _day(connection: sa.Connection, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """The day of a time (UTC), as text."""
    if connection.dialect.name == "postgresql":
        return sa.func.to_char(sa.func.timezone("UTC", column), "YYYY-MM-DD")
    return sa.func.date(column)
