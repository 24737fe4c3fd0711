"""A length of time in words."""

from __future__ import annotations

__all__ = ["duration"]


def duration(seconds: float) -> str:
    """Seconds in words that are as exact as an estimate is: `40 s`, `3 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h"
