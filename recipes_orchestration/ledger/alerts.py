"""Alerts: one for each cause, and which channel has been told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import sqlalchemy as sa

from .connection import Database, insert_into, one_at_a_time, portions
from .tables import alerts, tellings
from .words import kept_words

__all__ = ["MOST_TRIES", "Alert", "AlertBook", "AlertKind", "Cause", "Untold"]

MOST_TRIES = 12
"""A channel that did not take an alert so often is not told of it any more: after five hours."""

QUIET = timedelta(hours=1)
"""A cause that comes back so soon after its end is the same alert and not told again."""

FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)
# An alert that ended so long ago is not told to a channel that missed it.
STALE = timedelta(days=1)


class AlertKind(StrEnum):
    """What an alert is about."""

    HOLD = "hold"
    PAUSED = "paused"
    CAP = "cap"
    WAITING = "waiting"
    DEARER = "dearer"
    SLOWER = "slower"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that a person should know: `cause` names it, the same at every look."""

    cause: str
    kind: AlertKind
    words: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A cause with UTC times: when it was seen first, first told, and when it was over."""

    cause: str
    kind: AlertKind
    words: str
    first_at: datetime
    told_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Untold:
    """An alert that a channel is to be told of now, after so many tries that failed."""

    alert: Alert
    channel: str
    tries: int


_COLUMNS = tuple(alerts.c[each.name] for each in fields(Alert))


class AlertBook:
    """What there was to tell, and to whom it was told. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, cause: Cause) -> bool:
        """Keeps the cause; True when it is a fresh alert, False when it stands there already."""
        return self.keep([cause], ()) > 0

    def keep(
        self,
        found: Sequence[Cause],
        kinds: Collection[AlertKind],
        looked_at: datetime | None = None,
    ) -> int:
        """Keeps the causes, and ends those of these kinds that were not found any more.

        What another process found after `looked_at` goes on. The words of the first time stay.
        Gives how many are fresh alerts.
        """
        now = datetime.now(UTC)
        looked_at = looked_at or now
        wanted = {each.cause: each for each in found}

        def work(connection: sa.Connection) -> int:
            one_at_a_time(connection, "recipes alerts")
            fresh = sum(_raise(connection, each, now) for each in wanted.values())
            going_on = sa.select(alerts.c.cause).where(
                alerts.c.kind.in_(list(kinds)),
                alerts.c.ended_at.is_(None),
                alerts.c.first_at <= looked_at,
            )
            gone = [cause for cause in connection.scalars(going_on) if cause not in wanted]
            for portion in portions(gone):
                end = sa.update(alerts).where(alerts.c.cause.in_(portion))
                connection.execute(end.values(ended_at=now))
            return fresh

        if self._is_known(wanted, kinds):  # most looks find nothing new: no writer is waited for
            return 0
        return self._database.write(work)

    def all(self) -> list[Alert]:
        """Every alert, the latest first."""
        query = sa.select(*_COLUMNS).order_by(alerts.c.first_at.desc(), alerts.c.cause)
        with self._database.reading() as connection:
            return [_alert(row) for row in connection.execute(query)]

    def open(self, kinds: Collection[AlertKind] = tuple(AlertKind)) -> list[Alert]:
        """Those whose cause goes on, the latest first."""
        return [each for each in self.all() if each.ended_at is None and each.kind in kinds]

    def untold(self, channels: Collection[str], now: datetime | None = None) -> list[Untold]:
        """What is to be told to each of the channels now, the oldest first.

        A channel that did not take it is told again after 30 seconds, then later and later.
        """
        now = now or datetime.now(UTC)
        recent = sa.or_(alerts.c.ended_at.is_(None), alerts.c.ended_at > now - STALE)
        with self._database.reading() as connection:
            query = sa.select(*_COLUMNS).where(recent).order_by(alerts.c.first_at, alerts.c.cause)
            found = [_alert(row) for row in connection.execute(query)]
            told = {
                (row.cause, row.channel): row for row in connection.execute(sa.select(tellings))
            }
        due: list[Untold] = []
        for alert in found:
            for channel in channels:
                row = told.get((alert.cause, channel))
                if row is None:
                    due.append(Untold(alert, channel, 0))
                elif row.told_at is None and _is_due(row.tries, row.tried_at, now):
                    due.append(Untold(alert, channel, row.tries))
        return due

    def begin(self, untold: Untold) -> bool:
        """Whether this caller is to tell the channel now: of several at once exactly one is."""
        now = datetime.now(UTC)

        def work(connection: sa.Connection) -> bool:
            insert = insert_into(connection, tellings).values(
                cause=untold.alert.cause, channel=untold.channel, tries=1, tried_at=now
            )
            if untold.tries == 0:
                return connection.execute(insert.on_conflict_do_nothing()).rowcount == 1
            again = (
                sa.update(tellings)
                .where(*_this(untold), tellings.c.tries == untold.tries)
                .where(tellings.c.told_at.is_(None))
                .values(tries=untold.tries + 1, tried_at=now)
            )
            return connection.execute(again).rowcount == 1

        return self._database.write(work)

    def told(self, untold: Untold) -> None:
        """The channel has taken it."""
        now = datetime.now(UTC)

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.update(tellings).where(*_this(untold)).values(told_at=now))
            first = sa.update(alerts).where(alerts.c.cause == untold.alert.cause)
            connection.execute(first.where(alerts.c.told_at.is_(None)).values(told_at=now))

        self._database.write(work)

    def _is_known(self, wanted: Collection[str], kinds: Collection[AlertKind]) -> bool:
        standing = self.open()
        known = {each.cause for each in standing}
        gone = {each.cause for each in standing if each.kind in kinds} - set(wanted)
        return set(wanted) <= known and not gone


def _raise(connection: sa.Connection, cause: Cause, now: datetime) -> bool:
    at_it = alerts.c.cause == cause.cause
    row = connection.execute(sa.select(*_COLUMNS).where(at_it)).first()
    values = {
        "kind": cause.kind,
        "words": kept_words(cause.words),
        "first_at": now,
        "told_at": None,
        "ended_at": None,
    }
    if row is None:
        connection.execute(sa.insert(alerts).values(cause=cause.cause, **values))
        return True
    before = _alert(row)
    if before.ended_at is None:
        return False
    if now - before.ended_at < QUIET:
        connection.execute(sa.update(alerts).where(at_it).values(ended_at=None))
        return False
    connection.execute(sa.delete(tellings).where(tellings.c.cause == cause.cause))
    connection.execute(sa.update(alerts).where(at_it).values(values))
    return True


def _is_due(tries: int, tried_at: datetime, now: datetime) -> bool:
    if tries >= MOST_TRIES:
        return False
    return now >= tried_at + min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT)


def _this(untold: Untold) -> Iterable[sa.ColumnElement[bool]]:
    return (tellings.c.cause == untold.alert.cause, tellings.c.channel == untold.channel)


def _alert(row: Sequence[object]) -> Alert:
    cause, kind, *rest = row
    return Alert(cause, AlertKind(str(kind)), *rest)  # pyright: ignore[reportArgumentType]
