"""Which Dagster runs are at work, by a heartbeat that they write themselves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import UTC, datetime

import sqlalchemy as sa

from .connection import Database, insert_into, portions
from .tables import runs

__all__ = ["RunBook", "RunRow"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run, the process that works on it, and when that said so last."""

    run_id: str
    owner: str
    heartbeat_at: datetime


_COLUMNS = tuple(runs.c[field.name] for field in fields(RunRow))


class RunBook:
    """Heartbeats of runs. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, run_id: str, owner: str) -> None:
        """Says that the owner is at work on the run at this moment."""

        def work(connection: sa.Connection) -> None:
            insert = insert_into(connection, runs)
            new = insert.excluded
            beat = insert.on_conflict_do_update(
                index_elements=[runs.c.run_id],
                set_={"owner": new.owner, "heartbeat_at": new.heartbeat_at},
            )
            values = {"run_id": run_id, "owner": owner, "heartbeat_at": datetime.now(UTC)}
            connection.execute(beat, values)

        self._database.write(work)

    def of(self, run_ids: Collection[str]) -> dict[str, RunRow]:
        """Those of the runs that ever said so."""
        found: dict[str, RunRow] = {}
        with self._database.reading() as connection:
            for portion in portions(sorted(set(run_ids))):
                query = sa.select(*_COLUMNS).where(runs.c.run_id.in_(portion))
                found |= {row.run_id: RunRow(*row) for row in connection.execute(query)}
        return found

    def forget(self, run_ids: Collection[str]) -> None:
        """Forgets runs that have ended."""

        def work(connection: sa.Connection) -> None:
            for portion in portions(sorted(set(run_ids))):
                connection.execute(sa.delete(runs).where(runs.c.run_id.in_(portion)))

        if run_ids:
            self._database.write(work)
