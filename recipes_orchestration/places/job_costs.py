"""What a paid job cost, shared out over what it gave: equal parts, whatever took longest.

So the cost of the landed rows and the waste are together what was booked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal

from ..runner.work import Outcome, Spent
from .money import Bill

__all__ = ["LANDED", "JobCost"]

LANDED = "landed"
"""The kind of an outcome that is a result."""

# The library and the ledger keep no less.
_BILLIONTH = Decimal("1e-9")


@dataclass
class JobCost:
    """The cost of one job on the machine `model`. `usd` is None when nobody knows it.

    `lines` counts its outcomes by kind: it is to be known before the first one is `shared`.
    """

    model: str
    usd: Decimal | None
    basis: str
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    _given: int = 0

    @property
    def wasted_usd(self) -> Decimal:
        """The part of what failed; all of it when nothing came of the job."""
        usd = self.usd or Decimal(0)
        lines, landed = sum(self.lines.values()), self.lines.get(LANDED, 0)
        return (usd * (lines - landed) / lines).quantize(usd) if lines else usd

    @property
    def landed_usd(self) -> Decimal:
        """The part of the results."""
        return (self.usd or Decimal(0)) - self.wasted_usd

    def shared(self, outcome: Outcome) -> Outcome:
        """The outcome with its part, if it is a result."""
        if outcome.failure is not None:
            return outcome
        before = self._up_to(self._given)
        self._given += 1
        usd = None if self.usd is None else self._up_to(self._given) - before
        return outcome._replace(spent=Spent(self.model, 0, 0, 0, usd, self.basis))

    def bill(self) -> Bill:
        """All of it."""
        return Bill(
            model=self.model,
            mode="job",
            basis=self.basis,
            landed_usd=self.landed_usd,
            wasted_usd=self.wasted_usd,
            tokens_in=0,
            tokens_out=0,
            tokens_cached=0,
            lines=dict(self.lines),
        )

    def _up_to(self, results: int) -> Decimal:
        """So many results together. Rounded down each time, all of them are the whole."""
        landed = max(1, self.lines.get(LANDED, 0))
        return (self.landed_usd * min(results, landed) / landed).quantize(_BILLIONTH, ROUND_DOWN)
