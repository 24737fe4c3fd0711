"""What a channel is given to tell, and what it says when it could not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ..errors import ConfigError, ProviderError

__all__ = ["SECONDS", "Channel", "NotTold", "Notice", "secret_of"]

SECONDS = 10.0
"""So long a channel may take to answer."""

LONGEST = 3_000


class NotTold(ProviderError):
    """A channel did not take a notice. The words hold neither an address nor a secret."""


@dataclass(frozen=True)
class Notice:
    """An alert as it goes out. `project` is the project's name, `ended_at` set when it is over."""

    project: str
    kind: str
    cause: str
    words: str
    first_at: datetime
    ended_at: datetime | None = None

    @property
    def title(self) -> str:
        """One line of at most 100 characters that goes wherever a line goes."""
        line = " ".join(f"{self.project}: {_TITLES.get(self.kind, self.kind)}".split())
        return "".join(c for c in line if c.isprintable())[:100]

    @property
    def text(self) -> str:
        """The words with their time, at most 3,000 characters."""
        words = self.words if len(self.words) <= LONGEST else f"{self.words[:LONGEST]} ..."
        over = f" It was over at {_told(self.ended_at)}." if self.ended_at is not None else ""
        return f"{words} (Since {_told(self.first_at)}.){over}"

    @property
    def document(self) -> Mapping[str, str | None]:
        """The same for programs."""
        return {
            "project": self.project,
            "kind": self.kind,
            "cause": self.cause,
            "title": self.title,
            "text": self.words[:LONGEST],
            "since": self.first_at.isoformat(),
            "ended": None if self.ended_at is None else self.ended_at.isoformat(),
        }


_TITLES = {
    "hold": "pages wait for a person",
    "paused": "a place is paused",
    "cap": "a spending cap is reached",
    "waiting": "a batch waits for long",
    "dearer": "a batch cost more than its estimate",
    "slower": "a step takes longer and longer",
    "deadline": "a deadline has passed",
    "test": "this is a test",
}


class Channel(Protocol):
    """A way to tell a person."""

    name: str

    def tell(self, notice: Notice) -> None:
        """Tells it, within `SECONDS`. Raises `NotTold`; `ConfigError` when it is not set up."""
        ...


def secret_of(variable: str, what: str) -> str:
    """What the environment variable holds. Raises `ConfigError` when it is not set."""
    found = os.environ.get(variable, "").strip()
    if not found:
        raise ConfigError(f"The environment variable {variable}, {what}, is not set; set it.")
    return found


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
