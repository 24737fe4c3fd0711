"""Opening the ledger, and the books in it."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, Self

import sqlalchemy as sa

from ..errors import LedgerError
from .address import Address, address_of
from .alerts import AlertBook
from .bookings import BookingBook
from .connection import Database
from .controls import ControlBook
from .holds import HoldBook
from .leftovers import LeftoverBook
from .migrate import migrate
from .pages import PageBook
from .pauses import PauseBook
from .reservations import ReservationBook
from .runs import RunBook
from .spend_sums import SpendBook
from .task_records import RecordBook
from .task_times import TimesBook
from .tasks import TaskBook

__all__ = ["Ledger", "open_ledger"]


class Ledger:
    """What has been sent and what has been decided; never what is done.

    `pages`, `tasks`, `holds`, `bookings`, `reservations`, `pauses`, `controls`, `alerts`,
    `records`, `leftovers` and `runs` are its books. Every call of theirs is one transaction.
    Threads may share a ledger; another process opens its own.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.pages = PageBook(database)
        self.tasks = TaskBook(database)
        self.holds = HoldBook(database)
        self.bookings = BookingBook(database)
        self.pauses = PauseBook(database)
        self.controls = ControlBook(database)
        self.runs = RunBook(database)
        self.times = TimesBook(database)
        self.reservations = ReservationBook(database)
        self.spend = SpendBook(database)
        self.alerts = AlertBook(database)
        self.records = RecordBook(database)
        self.leftovers = LeftoverBook(database)

    @property
    def url_shown(self) -> str:
        """The ledger's URL without its password."""
        return self._database.address.shown

    def close(self) -> None:
        """Closes the connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.url_shown}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger is not sent to another process: open it there by its URL.")


def open_ledger(url: str, *, wait_seconds: float = 30.0) -> Ledger:
    """The ledger at a URL, its schema brought up to date.

    `sqlite:////folder/ledger.sqlite` (the folder is made) or `postgresql://user@host/database`.
    Safe with many processes at once. One try of a call waits `wait_seconds` for other processes,
    and there are three. Raises `LedgerError`, which never shows the password.
    """
    address = address_of(url)
    _make_folder(address)
    database = Database(address, wait_seconds)
    try:
        if address.sqlite_file is not None:
            database.use_write_ahead_log()
        else:
            _require_unicode(database)
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Ledger(database)


def _make_folder(address: Address) -> None:
    file = address.sqlite_file
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"The folder of the ledger {address.shown} could not be made: {error.strerror}. "
            "Name another file in the ledger's URL."
        ) from error
    if file.is_dir():
        raise LedgerError(
            f"The ledger {address.shown} is a folder; name a file in it in the ledger's URL."
        )


def _require_unicode(database: Database) -> None:
    with database.reading() as connection:
        encoding = connection.scalar(sa.text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise LedgerError(
            f"The database of the ledger {database.address.shown} has the encoding {encoding}, "
            "and file names need UTF8: make one with CREATE DATABASE ... ENCODING 'UTF8' "
            "TEMPLATE template0."
        )
