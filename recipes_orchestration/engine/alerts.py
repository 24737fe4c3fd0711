"""Alerts: what a person should know is kept once for each cause, and told to every channel."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from ..channels.channel import SECONDS, Channel, Notice
from ..channels.opening import channels_of
from ..errors import RecipesError
from ..ledger.alerts import Alert, Untold
from .causes import FOUND, find_causes
from .engine import Engine

__all__ = ["configured_channels", "look_for_alerts", "notice_of", "tell_alerts", "tell_within"]


def look_for_alerts(engine: Engine) -> int:
    """Keeps what there is to tell, and ends what is over; gives how many alerts are fresh."""
    now = datetime.now(UTC)
    return engine.ledger.alerts.keep(find_causes(engine, now), FOUND, now)


def configured_channels(engine: Engine) -> list[Channel]:
    """Those that the project names."""
    return channels_of(engine.project.alerts)


def tell_alerts(engine: Engine, channels: Sequence[Channel], seconds: float) -> list[str]:
    """Tells each channel what it has not been told; gives words for each that took something not.

    All channels are told at the same time, one alert after another. A channel that fails is left
    alone until the next call. Takes at most so many seconds, and begins nothing when fewer are
    left than a channel may take.
    """
    until = time.monotonic() + seconds
    left = {channel.name: channel for channel in channels}
    troubles: list[str] = []
    while left and until - time.monotonic() >= SECONDS:
        waiting: dict[str, Untold] = {}
        for untold in engine.ledger.alerts.untold(left):
            waiting.setdefault(untold.channel, untold)
        mine = [untold for untold in waiting.values() if engine.ledger.alerts.begin(untold)]
        if not mine:
            break
        tries = {
            untold.channel: _Try(left[untold.channel], notice_of(engine, untold.alert))
            for untold in mine
        }
        end = time.monotonic() + SECONDS
        for untold in mine:
            words = tries[untold.channel].outcome(end)
            if words is None:
                engine.ledger.alerts.told(untold)
            else:
                del left[untold.channel]
                troubles.append(words)
    return troubles


def tell_within(channel: Channel, notice: Notice) -> str | None:
    """Tells one channel once; gives why it was not told."""
    return _Try(channel, notice).outcome(time.monotonic() + SECONDS)


def notice_of(engine: Engine, alert: Alert) -> Notice:
    """The alert as it goes out."""
    return Notice(
        project=engine.project.name,
        kind=alert.kind.value,
        cause=alert.cause,
        words=alert.words,
        first_at=alert.first_at,
        ended_at=alert.ended_at,
    )


class _Try:
    """A channel at work in a thread of its own, which is left behind when it does not answer.

    A socket's time-out counts from byte to byte, so that alone it bounds nothing.
    """

    def __init__(self, channel: Channel, notice: Notice) -> None:
        self._channel = channel
        self._notice = notice
        self._words: str | None = None
        self._thread = threading.Thread(target=self._tell, daemon=True, name="recipes-alert")
        self._thread.start()

    def outcome(self, end: float) -> str | None:
        """Waits until `end`, in seconds of the monotonic clock; None when it was told."""
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            return f"{self._channel.name} did not answer an alert within {SECONDS:.0f} seconds."
        return self._words

    def _tell(self) -> None:
        try:
            self._channel.tell(self._notice)
        except RecipesError as error:
            self._words = str(error)
        except Exception as error:  # noqa: BLE001 - its words may hold a secret
            self._words = f"{self._channel.name} took no alert: {type(error).__name__}."
