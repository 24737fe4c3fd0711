"""The types of columns, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

__all__ = ["Dollars", "UtcTime", "number", "words"]


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware UTC datetime from both databases; SQLite itself keeps no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """UTC, without the zone where the database has no room for it."""
        if value is None:
            return None
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        """UTC, with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Dollars(sa.types.TypeDecorator[Decimal]):
    """US dollars to nine places, kept as a whole number: SQLite has no decimals."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: sa.Dialect) -> int | None:  # noqa: ARG002
        """Billionths of a dollar."""
        return None if value is None else int(value.scaleb(9).to_integral_value())

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Decimal | None:  # noqa: ARG002
        """Dollars."""
        return None if value is None else Decimal(int(value)).scaleb(-9)


def words() -> sa.types.TypeEngine[str]:
    """Texts in bytewise order on both databases; PostgreSQL would sort by the server's locale."""
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def number() -> sa.types.TypeEngine[int]:
    """Numbers that the database gives: SQLite does so only where the type is exactly INTEGER."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")
