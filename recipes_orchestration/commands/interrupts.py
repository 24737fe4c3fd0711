"""Ctrl-C and SIGTERM: the first one stops in good order, a later one at once."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

__all__ = ["Stopping", "stopping_in_order"]

# A terminal, a shell and a supervisor may each pass the same wish on.
_SAME_WISH_SECONDS = 1.0
# After so long the destructor in which an interrupt was swallowed is over.
_AGAIN_SECONDS = 0.05


@dataclass
class Stopping:
    """Whether somebody has asked this command to stop."""

    asked_at: float | None = None
    swallowed: bool = False

    def raise_if_asked(self) -> None:
        """Stops here when an earlier `KeyboardInterrupt` was swallowed, as in a destructor."""
        if self.asked_at is not None:
            raise KeyboardInterrupt


@contextmanager
def stopping_in_order(say: Callable[[str], None]) -> Generator[Stopping]:
    """Within the block SIGINT and SIGTERM raise `KeyboardInterrupt`, the first with a word.

    Only in the main thread can signals be caught; elsewhere the block changes nothing. Python drops
    what is raised in a destructor or in the callback of a weak reference, as garbage collection
    calls them at any moment: such an interrupt is raised again once that is over.
    """
    stopping = Stopping()
    usual = sys.unraisablehook
    timers: list[threading.Timer] = []

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  what signal hands over
        if stopping.swallowed:
            stopping.swallowed = False
            raise KeyboardInterrupt
        now = time.monotonic()
        if stopping.asked_at is not None and now - stopping.asked_at < _SAME_WISH_SECONDS:
            return
        first = stopping.asked_at is None
        stopping.asked_at = now
        if first:
            say("Stopping: what is done is landed first. Once more stops at once.")
        raise KeyboardInterrupt

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            usual(unraisable)
            return
        stopping.swallowed = True
        main = threading.main_thread().ident
        assert main is not None
        again = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()
        timers.append(again)

    try:
        before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        yield stopping
        return
    sys.unraisablehook = dropped
    try:
        yield stopping
    finally:
        sys.unraisablehook = usual
        for timer in timers:
            timer.cancel()
        for each, handler in before.items():
            signal.signal(each, handler)
