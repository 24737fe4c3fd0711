"""What becomes of each request, by the script and the hash of the request."""

from __future__ import annotations

from enum import StrEnum

from .script import Script

__all__ = ["Fate", "fate_of", "goes_by_hash"]


class Fate(StrEnum):
    """What becomes of one request."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    ACCOUNT = "account"
    STATUS_400 = "status_400"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    # Answered, and billed, but of no use.
    REFUSED = "refused"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    THINKING = "thinking"
    EMPTY = "empty"
    WRONG_SHAPE = "wrong_shape"

    @property
    def answered(self) -> bool:
        """Whether a response came, whatever it is worth."""
        return self not in _UNANSWERED


_UNANSWERED = frozenset((Fate.ERRORED, Fate.ACCOUNT, Fate.STATUS_400, Fate.EXPIRED, Fate.CANCELLED))


def _shares(script: Script) -> list[tuple[float, Fate]]:
    return [
        (script.error_share, Fate.ERRORED),
        (script.refusal_share, Fate.REFUSED),
        (script.truncation_share, Fate.TRUNCATED),
        (script.filtered_share, Fate.FILTERED),
        (script.thinking_only, Fate.THINKING),
        (script.empty_share, Fate.EMPTY),
        (script.wrong_shape_share, Fate.WRONG_SHAPE),
    ]


def goes_by_hash(script: Script) -> bool:
    """Whether requests must be hashed to know what becomes of them."""
    return not script.account_error and any(share for share, _ in _shares(script))


def fate_of(script: Script, digest: str) -> Fate:
    """What becomes of a request with this hash."""
    if script.account_error:
        return Fate.ACCOUNT
    place = int(digest[:8], 16) / 2**32
    for share, fate in _shares(script):
        if place < share:
            return fate
        place -= share
    return Fate.SUCCEEDED
