"""One batch sent and landed by hand, and what stands in library and ledger after it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from recipes_orchestration.engine.adopt import Adopted, adopt
from recipes_orchestration.engine.advance import Seen
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.ledger.bookings import Booking
from recipes_orchestration.ledger.holds import HoldRow
from recipes_orchestration.ledger.tables import tasks as tasks_table
from recipes_orchestration.ledger.tasks import TaskRow
from recipes_orchestration.rehearsal import Rehearsal, Script

from .cloud_archive import BATCH, CloudArchive, advance_once, make_cloud_archive

__all__ = [
    "age_task",
    "cloud",
    "direct",
    "failures",
    "land_batch",
    "only_booking",
    "reasons",
    "reopen_task",
    "rows_of",
    "send_batch",
    "sizes",
    "until",
]


def direct(rehearsal: Rehearsal, provider: str, **script: Any) -> None:
    """Says how the provider behaves; Bedrock takes a batch of any size."""
    rehearsal.script(provider, Script(min_records=1, **script))


def cloud(
    folder: Path, rehearsal: Rehearsal, provider: str, pages: int = 5, **more: Any
) -> CloudArchive:
    """An archive at a provider that answers everything; `direct` it after this, or before."""
    side = rehearsal.side(provider)
    if side.script == Script():
        direct(rehearsal, provider)
    return make_cloud_archive(folder, provider, pages, bucket=rehearsal.bucket, **more)


def send_batch(engine: Engine, step: str = "read") -> TaskRow:
    """Sends what there is to send of a step, which must be one task."""
    advance_once(engine, step)
    (task,) = engine.ledger.tasks.open()
    return task


def land_batch(engine: Engine) -> Adopted:
    """Asks about the open tasks and lands what has ended; sends nothing."""
    return adopt(engine, engine.ledger.tasks.open())


def until(engine: Engine, done: Callable[[Seen], bool], seconds: float = 30.0) -> Seen:
    """Advances until what was seen is as wanted."""
    stop = time.monotonic() + seconds
    while not done(seen := advance_once(engine)):
        assert time.monotonic() < stop, f"still not as wanted: {seen}"
        time.sleep(0.05)
    return seen


def rows_of(engine: Engine, step: str = "read", batch: str = BATCH) -> list[dict[str, Any]]:
    return engine.library.table("letters", step, batch).to_pylist()


def failures(engine: Engine, batch: str = BATCH) -> dict[str, HoldRow]:
    """What failed, by page."""
    rows = engine.ledger.holds.attempts_of("letters", "letters", batch)
    return {row.page_id: row for row in rows.values()}


def reasons(engine: Engine) -> Mapping[str, int]:
    """How many pages failed for each reason."""
    return Counter(row.reason for row in failures(engine).values())


def only_booking(engine: Engine) -> Booking:
    """The one booking, whose landed dollars are those of the landed rows."""
    (booking,) = engine.ledger.bookings.all()
    landed = sum((row["cost_usd"] or Decimal(0) for row in rows_of(engine)), Decimal(0))
    assert booking.landed_usd == landed
    return booking


def sizes(rehearsal: Rehearsal, provider: str) -> list[int]:
    """How many requests each batch at the provider has, oldest first."""
    return [batch["size"] for batch in rehearsal.counts(provider)["batches"]]


def reopen_task(engine: Engine, task_id: str) -> None:
    """Puts the ledger back to before the task was closed, as after a kill while it landed."""
    values: dict[str, Any] = {"state": "open", "ended_at": None, "landed_at": None}
    change = sa.update(tasks_table).where(tasks_table.c.id == task_id).values(values)
    engine.ledger._database.write(lambda connection: connection.execute(change))


def age_task(engine: Engine, task_id: str, hours: float) -> None:
    """Moves the moments at which a task was sent and stopped back in time."""
    task = engine.ledger.tasks.get(task_id)
    assert task is not None
    values: dict[str, Any] = {
        name: moment - timedelta(hours=hours)
        for name in ("created_at", "sent_at", "stopped_at")
        if (moment := getattr(task, name)) is not None
    }
    change = sa.update(tasks_table).where(tasks_table.c.id == task_id).values(values)
    engine.ledger._database.write(lambda connection: connection.execute(change))
