"""The heartbeat of a task that is being sent."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from ..ledger.tasks import TaskRow
from .engine import Engine

__all__ = ["BEAT_EVERY", "beating"]

BEAT_EVERY = 10.0
"""Seconds between two beats."""


@contextmanager
def beating(engine: Engine, task: TaskRow) -> Generator[None]:
    """Says all the while that this process is at work on the task, however long it takes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_EVERY):
            engine.ledger.tasks.beat([task.id], engine.owner)

    thread = threading.Thread(target=beat, daemon=True, name="recipes-beat")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
