"""Alerts in the adopt sensor's tick: into its log always, and to the channels of the project."""

from __future__ import annotations

from typing import Protocol

from ..channels.channel import Channel, Notice
from ..engine.alerts import configured_channels, look_for_alerts, tell_alerts
from .adoption_desk import Desk

__all__ = ["alert", "log_channel"]


class _Log(Protocol):
    def warning(self, msg: object, *args: object) -> None: ...


class _LogChannel:
    """The log of a tick, as one more channel."""

    name = "dagster"

    def __init__(self, log: _Log) -> None:
        self._log = log

    def tell(self, notice: Notice) -> None:
        """Writes it as a warning."""
        self._log.warning("%s", f"Alert: {notice.title}. {notice.text}")


def log_channel(log: _Log) -> Channel:
    """The Dagster log as a channel, told once of each alert."""
    return _LogChannel(log)


def alert(desk: Desk, log: _Log) -> None:
    """Looks for what a person should know, and tells what has not been told.

    Comes last in a tick, within what is left of its time: no run waits for a channel.
    """
    look_for_alerts(desk.engine)
    channels = [log_channel(log), *configured_channels(desk.engine)]
    desk.notes += tell_alerts(desk.engine, channels, desk.seconds_left)
