"""Turns at this machine's cores: one run's local work at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["local_turn"]

_ASK_EVERY = 0.5


@contextmanager
def local_turn(folder: Path, on_wait: Callable[[], None]) -> Generator[None]:
    """Waits until no other process of the project works here, and works for the block.

    The operating system keeps the lock, so a killed process gives it back. `on_wait` is called
    once when there is somebody to wait for. `folder` is the project's own, for the lock file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "local.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire(poll_interval=_ASK_EVERY)
    try:
        yield
    finally:
        lock.release()
