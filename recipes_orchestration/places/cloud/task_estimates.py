"""What the calls of one task will likely cost, from a sample of them: cheap enough for each one.

The sheet estimates a whole recipe before anything is packed; this is asked while a task is, so that
what it costs can be held against what it was thought to cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from statistics import fmean

from ...providers.call_tokens import CallTokens, count_call
from ...providers.prices import ModelPrices, price_of
from ...providers.provider import Call, Group
from ...runner.work import Usual
from ...steps.ask import Usage
from ..money import Expected

__all__ = ["UNBOUNDED", "TaskEstimate"]

UNBOUNDED = 4096
"""Tokens that an answer is taken to have when nothing bounds it and none has landed."""

# The first calls of a package are counted, then one of so many, and of a large package's later ones
# one of more: counting reads the whole call.
_FIRST, _EACH, _MANY, _EACH_OF_MANY = 8, 32, 2_000, 256


@dataclass
class TaskEstimate:
    """Adds up the calls of one package of a provider's place, priced as of today.

    `prices` are the project's own, `usual` is what answers of the step had before.
    """

    provider: str
    group: Group
    prices: Mapping[str, ModelPrices]
    usual: Usual
    _calls: int = 0
    _counted: list[CallTokens] = field(default_factory=list[CallTokens])

    def add(self, call: Call) -> None:
        """Adds a call that will be asked once."""
        each = _EACH if self._calls < _MANY else _EACH_OF_MANY
        if self._calls < _FIRST or self._calls % each == 0:
            self._counted.append(count_call(call))
        self._calls += 1

    def expected(self, *, batch: bool) -> Expected:
        """All that was added, by the batch's or the plain price."""
        if not self._counted:
            return Expected(Decimal(0))
        each_in = fmean(each.tokens_in for each in self._counted)
        out = self.usual.tokens_out
        if out is None:
            most = (UNBOUNDED if each.most_out is None else each.most_out for each in self._counted)
            out = fmean(most)
        usage = Usage(tokens_in=round(each_in * self.usual.factor), tokens_out=round(out))
        now = datetime.now(UTC)
        model = self.group.model
        each = price_of(self.provider, model, usage, now, batch=batch, overrides=self.prices).usd
        usd = None if each is None else (each * self._calls).quantize(Decimal("1e-9"))
        return Expected(usd, self._calls, each_in * self._calls)
