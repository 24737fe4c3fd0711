"""What the answers of one task cost, added up as they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from ...providers.prices import ModelPrices, Rates, rates_of
from ...providers.provider import Group, Provider
from ...runner.work import Spent
from ...steps.ask import Answer, Usage
from ..place import Bill

__all__ = ["Costs", "free", "plus"]


def free(spent: Spent) -> Spent:
    """The same answer for another page: asked once and paid once."""
    usd = None if spent.usd is None else Decimal(0)
    return spent._replace(tokens_in=0, tokens_out=0, tokens_cached=0, usd=usd)


def plus(spent: Spent, more: Spent) -> Spent:
    """Both costs together, under the model and basis of the first."""
    unknown = spent.usd is None and more.usd is None
    return spent._replace(
        tokens_in=spent.tokens_in + more.tokens_in,
        tokens_out=spent.tokens_out + more.tokens_out,
        tokens_cached=spent.tokens_cached + more.tokens_cached,
        usd=None if unknown else (spent.usd or Decimal(0)) + (more.usd or Decimal(0)),
    )


@dataclass
class Costs:
    """Prices answers by the time at which they were asked for, and adds them up.

    `mode` is `batch` or `plain`; what a Python step asks live is priced by `LiveCalls`.
    """

    provider: Provider
    group: Group
    mode: str
    prices: Mapping[str, ModelPrices]
    asked_at: datetime | None
    _landed: Decimal = Decimal(0)
    _wasted: Decimal = Decimal(0)
    _saved: Decimal = Decimal(0)
    # Tokens whose plain price is so much above the batch price, whatever the question.
    _flat_in: int = 0
    _flat_out: int = 0
    _tokens_in: int = 0
    _tokens_out: int = 0
    _tokens_cached: int = 0
    _models: Counter[str] = field(default_factory=Counter[str])
    _bases: Counter[str] = field(default_factory=Counter[str])
    _rates: dict[tuple[str, bool], Rates | None] = field(
        default_factory=dict[tuple[str, bool], Rates | None]
    )

    def spent(self, group: Group, answer: Answer) -> Spent:
        """What one answer cost."""
        batched = self.mode == "batch"
        rates = self._rates_of(group.model, batched)
        tokens_in, tokens_out, tokens_cached, _ = usage = answer.usage
        model = answer.model or group.model
        if rates is None:
            return Spent(model, tokens_in, tokens_out, tokens_cached, None, "unknown")
        usd = rates.usd(usage)
        if batched:
            self._save(rates, usd, usage)
        return Spent(model, tokens_in, tokens_out, tokens_cached, usd, rates.basis)

    def _save(self, rates: Rates, usd: Decimal, usage: Usage) -> None:
        """Adds what a plain call would have cost more. All batched answers are of one model."""
        tokens_in, tokens_out, cached, written = usage
        plain = self._rates_of(self.group.model, False)
        if plain is None:
            return
        if plain.flat and rates.flat and not (cached or written):
            self._flat_in += tokens_in
            self._flat_out += tokens_out
        else:
            self._saved += plain.usd(usage) - usd

    def _saved_usd(self) -> Decimal:
        rates = self._rates_of(self.group.model, True)
        plain = self._rates_of(self.group.model, False)
        if rates is None or plain is None or rates.flat is None or plain.flat is None:
            return self._saved
        more_in, more_out = (each - less for each, less in zip(plain.flat, rates.flat, strict=True))
        return self._saved + self._flat_in * more_in + self._flat_out * more_out

    def _rates_of(self, model: str, batch: bool) -> Rates | None:
        """The prices at the time of asking: looked up once, as the task was sent once."""
        try:
            return self._rates[model, batch]
        except KeyError:
            rates = self._rates[model, batch] = rates_of(
                self.provider.name,
                model,
                self.asked_at or datetime.now(UTC),
                batch=batch,
                overrides=self.prices,
            )
            return rates

    def unread(self, group: Group) -> Spent:
        """What an answer cost that only the step's own code can read: nobody knows."""
        return Spent(group.model, 0, 0, 0, None, "unknown")

    def add(self, spent: Spent, *, wasted: bool) -> None:
        """Adds one page's cost to the bill."""
        self._tokens_in += spent.tokens_in
        self._tokens_out += spent.tokens_out
        self._tokens_cached += spent.tokens_cached
        self._models[spent.model] += 1
        self._bases[spent.basis] += 1
        if wasted:
            self._wasted += spent.usd or Decimal(0)
        else:
            self._landed += spent.usd or Decimal(0)

    def bill(self, lines: Mapping[str, int]) -> Bill:
        """The sum; `lines` counts outcomes by kind."""
        return Bill(
            model=next(iter(each for each, _ in self._models.most_common(1)), self.group.model),
            mode=self.mode,
            basis=next(iter(each for each, _ in self._bases.most_common(1)), "unknown"),
            landed_usd=self._landed,
            wasted_usd=self._wasted,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            tokens_cached=self._tokens_cached,
            lines=dict(lines),
            saved_usd=self._saved_usd(),
        )
