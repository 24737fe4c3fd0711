"""Garbage collection while many pages are held: rarely, as it looks through all of them.

What was there before is left out of it meanwhile: mostly modules, which stay.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["OFTEN", "RARELY", "collecting_after"]

OFTEN = 10_000
"""For code of others: a provider's SDK leaves a circle behind for each page, with its picture."""
RARELY = 250_000
"""For our own, which leaves no circles."""

# After so many looks at what is younger, instead of 10, what has lived longest is looked through.
_LOOKS = 100

# The end of a block may come in a collection that begins while the lock is held.
_lock = threading.RLock()
_usual: list[tuple[int, int, int]] = []
_asked: list[int] = []


@contextmanager
def collecting_after(new_objects: int) -> Generator[None]:
    """As long as a block lasts in any thread, so many new objects, instead of 700, start a
    collection in this process; while several last, the fewest that one of them says.
    """
    with _lock:
        if not _asked:
            _usual[:] = [gc.get_threshold()]
            gc.freeze()
        _asked.append(new_objects)
        _set()
    try:
        yield
    finally:
        with _lock:
            _asked.remove(new_objects)
            if _asked:
                _set()
            else:
                gc.set_threshold(*_usual[0])
                gc.unfreeze()


def _set() -> None:
    first, second, _ = _usual[0]
    if first:  # unless somebody has turned it off
        gc.set_threshold(max(first, min(_asked)), second, _LOOKS)
