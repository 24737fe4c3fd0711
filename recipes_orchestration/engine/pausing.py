"""A place that takes nothing for now is paused, with the reason in its own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..errors import Refused, Unreachable
from .engine import Engine

__all__ = ["UNREACHABLE_SECONDS", "pause_place"]

UNREACHABLE_SECONDS = 60.0
"""So long nothing is sent to a place that could not be reached."""


def pause_place(engine: Engine, place: str, error: Refused | Unreachable) -> bool:
    """Whether the error pauses the place: one of the account or of the connection does.

    A connection that a person must open pauses it until the place has answered again.
    """
    if isinstance(error, Unreachable):
        if error.connect:
            engine.ledger.pauses.pause(place, str(error), until_reached=True)
        else:
            until = datetime.now(UTC) + timedelta(seconds=UNREACHABLE_SECONDS)
            engine.ledger.pauses.pause(place, str(error), until)
        return True
    if not error.account:
        return False
    until = None
    if error.retry_after is not None:
        until = datetime.now(UTC) + timedelta(seconds=error.retry_after)
    engine.ledger.pauses.pause(place, str(error), until)
    return True
