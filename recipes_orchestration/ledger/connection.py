"""Transactions on the ledger's database: one for each call, tried again while others hold it."""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import orjson
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random,
    wait_random_exponential,
)

from ..errors import LedgerError
from .address import Address

__all__ = ["Database", "among", "insert_into", "listed", "one_at_a_time", "portions"]

T = TypeVar("T")

_TRIES = 3
_WRITING = "recipes_writing"
_PORTION = 900  # bound values in one statement; older SQLite builds take 999
# serialization failure, deadlock, lock timeout: the server has undone the whole transaction
_BUSY_CODES = frozenset({"40001", "40P01", "55P03"})

_open_databases: weakref.WeakSet[Database] = weakref.WeakSet()


class Database:
    """An engine with the project's way of transactions. Raises nothing but `LedgerError`.

    `wait_seconds` is how long one try of a transaction waits for another process's.
    """

    def __init__(self, address: Address, wait_seconds: float) -> None:
        self.address = address
        self._wait_seconds = wait_seconds
        self.engine = _engine(address, wait_seconds)
        self._writer = self.engine.execution_options(**{_WRITING: True})
        _open_databases.add(self)

    @contextmanager
    def reading(self) -> Generator[sa.Connection]:
        """A connection to read from: one snapshot on SQLite, never holding up a writer."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self._told(error) from self._cause(error)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """What `work` gives, run in one transaction: all of it is written, or nothing.

        `work` is called again when the database was busy, so it must have no effect outside.
        """
        tries = Retrying(
            retry=retry_if_exception(_is_busy),
            stop=stop_after_attempt(_TRIES),
            wait=wait_random_exponential(multiplier=0.05, max=2),
            reraise=True,
        )
        try:
            return tries(lambda: self._write_once(work))
        except SQLAlchemyError as error:
            raise self._told(error) from self._cause(error)

    def _write_once(self, work: Callable[[sa.Connection], T]) -> T:
        with self._writer.begin() as connection:
            return work(connection)

    def use_write_ahead_log(self) -> None:
        """Lets readers and a writer of a SQLite file work at the same time; kept in the file.

        SQLite takes this only outside of a transaction, and while other processes open the file
        it refuses at once instead of waiting.
        """
        tries = Retrying(
            retry=retry_if_exception(_is_busy),
            stop=stop_after_delay(self._wait_seconds),
            wait=wait_random(0.01, 0.1),
            reraise=True,
        )
        try:
            with closing(self.engine.raw_connection()) as connection:
                tries(connection.cursor().execute, "PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise self._told(error) from error
        except SQLAlchemyError as error:
            raise self._told(error) from error

    def close(self) -> None:
        """Closes every connection that is not in use."""
        self.engine.dispose()

    def _told(self, error: SQLAlchemyError | sqlite3.Error) -> LedgerError:
        if _is_busy(error):
            return LedgerError(
                f"The ledger {self.address.shown} stayed locked by another process for "
                f"{self._wait_seconds * _TRIES:.0f} seconds: see which `recipes` or dagster "
                "process is stuck, end it, and start this again; nothing was written."
            )
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        first_line = self.address.without_secrets(reason).strip().split("\n")[0]
        return LedgerError(
            f"The ledger {self.address.shown} could not be used: {first_line.rstrip('.')}. "
            "See that its URL is right and that the database can be reached and written."
        )

    def _cause(self, error: SQLAlchemyError) -> SQLAlchemyError | None:
        # A traceback prints the cause, so one which holds a secret is left out.
        text = str(error)
        return error if self.address.without_secrets(text) == text else None


def _engine(address: Address, wait_seconds: float) -> sa.Engine:
    if address.sqlite_file is not None:
        engine = sa.create_engine(
            address.url,
            hide_parameters=True,
            json_serializer=_json,
            json_deserializer=_from_json,
            connect_args={"timeout": wait_seconds},
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    # psycopg2 would send the rows of one statement one by one, each a way to the server and back.
    psycopg2 = address.url.get_driver_name() == "psycopg2"
    many = {"executemany_mode": "values_plus_batch"} if psycopg2 else {}
    try:
        engine = sa.create_engine(
            address.url,
            **many,
            hide_parameters=True,
            json_serializer=_json,
            json_deserializer=_from_json,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 15, **address.connect},
        )
    except ModuleNotFoundError as error:
        raise LedgerError(
            f"The ledger {address.shown} needs the package {error.name}: "
            "pip install 'recipes-orchestration[postgres]'."
        ) from None
    except SQLAlchemyError:
        raise LedgerError(
            f"The ledger {address.shown} names a driver that SQLAlchemy does not know; write "
            "postgresql:// in front of it."
        ) from None

    def prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(wait_seconds * 1000)}")
        connection.commit()

    event.listen(engine, "connect", prepare)
    return engine


# Tasks hold the ids of thousands of pages: orjson takes a fraction of the time.
def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half a character of a surrogate pair, which json writes as an escape
        return json.dumps(value)


def _from_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Python's own transaction handling begins late and only before some statements.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that begins as a reader and turns writer fails at once when another has
    # written meanwhile; one that begins as a writer waits for its turn.
    writing = connection.get_execution_options().get(_WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _is_busy(error: BaseException) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    # psycopg2 calls it pgcode, psycopg sqlstate
    code = getattr(cause, "pgcode", None) or getattr(cause, "sqlstate", None)
    return code in _BUSY_CODES


def insert_into(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An insert of the connection's own kind, which knows `ON CONFLICT`."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def among(
    connection: sa.Connection, column: sa.Column[str], values: Collection[str]
) -> sa.ColumnElement[bool]:
    """Whether a column's text is one of the values, however many: they travel as one."""
    if connection.dialect.name == "postgresql":
        return column == sa.any_(sa.cast(list(values), postgresql.ARRAY(sa.Text())))
    return column.in_(sa.select(listed(connection, values).c.value))


def listed(connection: sa.Connection, values: Collection[str]) -> sa.TableValuedAlias:
    """The values, however many, as a table with a column `value`, in their order."""
    if connection.dialect.name == "postgresql":
        many = sa.cast(list(values), postgresql.ARRAY(sa.Text()))
        return sa.func.unnest(many).table_valued("value").render_derived()
    return sa.func.json_each(_json(list(values))).table_valued("value")


def one_at_a_time(connection: sa.Connection, *words: str) -> None:
    """Until the transaction ends, no other passes this point with the same words."""
    if connection.dialect.name == "postgresql":  # on SQLite there is one writer anyway
        name = "\n".join(words)
        connection.execute(
            sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0)))
        )


def portions(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in portions that fit into one statement."""
    for start in range(0, len(values), _PORTION):
        yield values[start : start + _PORTION]


def _forget_connections() -> None:
    # A connection that parent and child both use mixes up their answers.
    for database in list(_open_databases):
        database.engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)
