"""The heartbeat of tasks that are being sent."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from ..ledger.tasks import TaskRow
from .engine import Engine

__all__ = ["BEAT_EVERY", "beating"]

BEAT_EVERY = 10.0
"""Seconds between two beats."""


@contextmanager
def beating(engine: Engine, tasks: Sequence[TaskRow]) -> Generator[None]:
    """Says all the while that this process is at work on the tasks, however long it takes."""
    ids = [task.id for task in tasks]
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_EVERY):
            engine.ledger.tasks.beat(ids, engine.owner)

    thread = threading.Thread(target=beat, daemon=True, name="recipes-beat")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
