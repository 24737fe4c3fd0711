"""Brings the ledger's schema up to date when it is opened, once, however many processes do."""

from __future__ import annotations

import threading
from pathlib import Path

import sqlalchemy as sa

from ..errors import LedgerError
from .connection import Database, one_at_a_time
from .tables import SCHEMA, VERSION_TABLE

__all__ = ["migrate"]

# Alembic keeps what it is working on in module globals.
_alembic_lock = threading.Lock()


def migrate(database: Database) -> None:
    """Runs the migrations that the database has not seen.

    All of them are one transaction which only one process can be in, so a process killed in the
    middle leaves the schema as it was. Raises `LedgerError` when the schema is newer than this
    code.
    """
    with database.reading() as connection:
        if _version(connection) == SCHEMA:
            return
    with _alembic_lock:
        database.write(lambda connection: _upgrade(connection, database.address.shown))


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    versions = sa.table(VERSION_TABLE, sa.column("version_num"))
    return connection.scalar(sa.select(versions.c.version_num))


def _upgrade(connection: sa.Connection, shown: str) -> None:
    # Imported late: alembic takes a noticeable part of a command's start, and is needed once.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    one_at_a_time(connection, "recipes ledger migrations")
    version = _version(connection)
    if version == SCHEMA:
        return
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise LedgerError(
            f"The ledger {shown} was written by a newer version of recipes-orchestration (schema "
            f"{version}, this one knows {SCHEMA}): install the newer version here too."
        )
    command.upgrade(config, "head")
