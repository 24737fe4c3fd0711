"""Garbage collection while many pages are held: rarely, as it looks through all of them.

What was there before is left out of it meanwhile: mostly modules, which stay.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["collecting_rarely"]

# So many new objects, instead of 700, start a collection. Not more: what a provider's SDK leaves
# behind for each page is a circle, with the page's picture in it.
_NEW_OBJECTS = 10_000
# After so many looks at what is younger, instead of 10, what has lived longest is looked through.
_LOOKS = 100

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []


@contextmanager
def collecting_rarely() -> Generator[None]:
    """As long as a block lasts in any thread, collections are rarer in this process."""
    with _lock:
        before = gc.get_threshold()
        _before.append(before)
        if 0 < before[0] < _NEW_OBJECTS:
            gc.set_threshold(_NEW_OBJECTS, before[1], _LOOKS)
        if len(_before) == 1:
            gc.freeze()
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*first)
                gc.unfreeze()
