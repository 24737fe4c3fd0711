"""A backlog of open tasks at a rehearsed provider, made of one task that was really sent."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.poll import Polled, poll_open
from recipes_orchestration.ledger.tables import task_pages, tasks
from recipes_orchestration.rehearsal import Rehearsal

__all__ = ["backlog", "list_calls", "timed_poll"]

# The most batches that one page of the provider's list holds.
_PAGE = {"anthropic": 1000, "openai": 100, "gemini": 100, "bedrock": 1000}


def backlog(engine: Engine, rehearsal: Rehearsal, provider: str, count: int) -> None:
    """Makes `count` open tasks of the one that is open, and their batches at the provider.

    Written down directly, as a thousand uploads would take minutes.
    """
    side = rehearsal.side(provider)
    (batch,) = side.batches.values()
    (task,) = engine.ledger.tasks.open()
    ids = [f"{batch.id[:-6]}{number:06x}" for number in range(0xA00000, 0xA00000 + count - 1)]
    for place, id in enumerate(ids):
        created = batch.created + timedelta(milliseconds=place)
        side.batches[id] = replace(batch, id=id, details=dict(batch.details), created=created)
    engine.ledger.tasks.sent(task.id, batch.id)
    engine_rows = sa.create_engine(str(engine.project.ledger_url))
    try:
        with engine_rows.begin() as connection:
            row = dict(connection.execute(sa.select(tasks)).mappings().one())
            now = datetime.now(UTC)
            new = [
                {**row, "id": f"{n:032x}", "name": f"{row['name']}-{n}", "remote_id": id}
                | {"created_at": now, "sent_at": now}
                for n, id in enumerate(ids)
            ]
            connection.execute(sa.insert(tasks), new)
            pages = dict(connection.execute(sa.select(task_pages)).mappings().one())
            of_new = [{**pages, "task_id": each["id"]} for each in new]
            connection.execute(sa.insert(task_pages), of_new)
    finally:
        engine_rows.dispose()
    side.calls = Counter()


def list_calls(provider: str, count: int) -> int:
    """How many pages the provider's list has for so many batches."""
    return -(-count // _PAGE[provider])


def timed_poll(engine: Engine) -> tuple[dict[str, Polled], float]:
    """One tick, and how many seconds it took."""
    started = time.perf_counter()
    polled = poll_open(engine)
    return polled, time.perf_counter() - started
