"""A last look before something is asked for that is paid for: whether it is still ours to ask for.

A computer that slept may wake in the middle of sending, when another has taken the work over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["asked_before_each", "still_ours"]

_check: ContextVar[Callable[[], None] | None] = ContextVar("recipes_still_ours", default=None)


@contextmanager
def asked_before_each(check: Callable[[], None]) -> Generator[None]:
    """Within the block `still_ours` asks `check`, which raises `TakenOver` when it is not."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def still_ours() -> None:
    """To be called right before a place is asked for a batch or a job.

    Raises `TakenOver` when another process has taken the work over; then nothing is asked for.
    """
    if (check := _check.get()) is not None:
        check()
