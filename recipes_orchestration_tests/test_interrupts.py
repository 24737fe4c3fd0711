"""A wish to stop is heard at whatever moment it comes."""

from __future__ import annotations

import os
import signal
import time
import weakref

import pytest

from recipes_orchestration.commands.interrupts import stopping_in_order


class Thing:
    pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_comes_in_the_callback_of_a_weak_reference_is_not_lost(number: int):
    said: list[str] = []
    things = [Thing()]
    reference = weakref.ref(things[0], lambda _: os.kill(os.getpid(), number))

    def work() -> None:
        with stopping_in_order(said.append):
            things.clear()
            assert reference() is None  # it has gone on: the first interrupt was dropped
            time.sleep(20)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - started < 10
    assert len(said) == 1
