"""What a task is thought to cost, what it cost, and what it may still spend while it lands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

__all__ = ["Bill", "Budget", "Expected"]


@dataclass(frozen=True)
class Expected:
    """What a task will likely cost in dollars; None when nobody knows its price.

    `calls` are so many questions that have `tokens_in` together, as they are counted here.
    """

    usd: Decimal | None
    calls: int = 0
    tokens_in: float = 0.0


@dataclass(frozen=True)
class Bill:
    """What a task cost in all. `lines` counts its outcomes by kind.

    `saved_usd` is what plain calls would have cost more; None where there are none.
    """

    model: str
    mode: str
    basis: str
    landed_usd: Decimal
    wasted_usd: Decimal
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    lines: Mapping[str, int]
    saved_usd: Decimal | None = None


class Budget(Protocol):
    """What a task may still spend, where there are caps."""

    def promise(self, usd: Decimal) -> None:
        """Reserves so much more for the task. Raises `OverCap` when that does not fit."""
        ...

    def paid(self, promised: Decimal, usd: Decimal) -> None:
        """Of what was promised so much was paid; the rest is let go."""
        ...

    def billed(self, bill: Bill) -> None:
        """All that the task was answered so far cost that much: no more is reserved for it."""
        ...
