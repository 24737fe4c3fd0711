"""What an answer costs: the project's own prices, else those that genai-prices carries.

genai-prices comes with its prices inside; nothing here lets it fetch others (it does so only when
its `UpdatePrices` is started). Its facts were read in version 0.2.3: a batch is priced by the
context `{"processing": "batch"}`, and of tiered prices the highest that the whole question exceeds
holds for all of its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ..steps.ask import Usage

__all__ = ["Basis", "ModelPrices", "Price", "Rates", "price_of", "rates_of"]

Basis = Literal["batch", "plain", "assumed", "project", "unknown"]
"""`batch` and `plain` are listed prices, `assumed` is half of the plain price for a batch of a
model that has no listed batch price, `project` is from project.yaml."""

_BATCH = {"processing": "batch"}
_ASSUMED_SHARE = Decimal("0.5")
_MILLION = Decimal(1_000_000)
_LISTS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google", "bedrock": "aws"}


@dataclass(frozen=True)
class ModelPrices:
    """A project's prices of one model, in dollars per million tokens.

    `cached` is for tokens read from a cache, None for the price of others. `batch_share` is what
    part of these prices (0 to 1) a batch costs.
    """

    input: Decimal
    output: Decimal = Decimal(0)
    cached: Decimal | None = None
    batch_share: Decimal = _ASSUMED_SHARE


class Price(NamedTuple):
    """Dollars, and where they come from; `usd` is None when nobody knows a price."""

    usd: Decimal | None
    basis: Basis


@dataclass(frozen=True, slots=True)
class _Rate:
    """Dollars per million tokens; `tiers` are (tokens in, dollars from more than these on)."""

    base: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, tokens_in: int) -> Decimal:
        rate = self.base
        for start, price in self.tiers:
            if tokens_in > start:
                rate = price
        return rate


@dataclass(frozen=True, slots=True)
class Rates:
    """The prices of one model, for batches or for plain calls.

    `flat` is what a token in and one out cost in dollars, where that does not depend on how long
    the question is.
    """

    input: _Rate | None
    output: _Rate | None
    cached: _Rate | None
    cache_write: _Rate | None
    share: Decimal
    basis: Basis
    flat: tuple[Decimal, Decimal] | None = None

    def usd(self, usage: Usage) -> Decimal:
        """What the tokens cost in dollars."""
        tokens_in, tokens_out, cached, written = usage
        if self.flat is not None and not (cached or written):
            each_in, each_out = self.flat
            return tokens_in * each_in + tokens_out * each_out
        return _usd(self, usage)


_UNKNOWN = Price(None, "unknown")


def price_of(
    provider: str,
    model: str,
    usage: Usage,
    at: datetime,
    *,
    batch: bool,
    overrides: Mapping[str, ModelPrices] | None = None,
) -> Price:
    """What the tokens cost that were asked for at that time; see `rates_of`."""
    rates = rates_of(provider, model, at, batch=batch, overrides=overrides)
    return _UNKNOWN if rates is None else Price(rates.usd(usage), rates.basis)


def rates_of(
    provider: str,
    model: str,
    at: datetime,
    *,
    batch: bool,
    overrides: Mapping[str, ModelPrices] | None = None,
) -> Rates | None:
    """What tokens cost that were asked for at that time; None when nobody knows.

    `provider` is the place's name, `model` the name that the provider was asked for; Bedrock's ids,
    inference profiles and ARNs are understood. `overrides` are the project's prices by model.
    Prices are looked up once a day of `at` (UTC), so a price that depends on the hour is that of
    noon; none of the four providers has one. The provider's own counts are never refused: cached
    tokens beyond the whole question cost no more than they do by themselves.
    """
    own = overrides.get(model) if overrides else None
    if own is not None:
        return _own(own, batch)
    when = at if at.tzinfo in (UTC, None) else at.astimezone(UTC)
    return _listed(provider, model, when.date(), batch)


def _usd(rates: Rates, usage: Usage) -> Decimal:
    total = Decimal(0)
    tokens_in = rest = usage.tokens_in
    # Tokens of a kind without a price of its own are priced as the others of the question.
    if rates.cached is not None and usage.tokens_cached:
        total += usage.tokens_cached * rates.cached.at(tokens_in)
        rest -= usage.tokens_cached
    if rates.cache_write is not None and usage.tokens_cache_write:
        total += usage.tokens_cache_write * rates.cache_write.at(tokens_in)
        rest -= usage.tokens_cache_write
    if rates.input is not None and rest > 0:
        total += rest * rates.input.at(tokens_in)
    if rates.output is not None:
        total += usage.tokens_out * rates.output.at(tokens_in)
    return total * rates.share / _MILLION


@lru_cache(maxsize=256)
def _own(prices: ModelPrices, batch: bool) -> Rates:
    return _with_flat(
        Rates(
            input=_Rate(prices.input),
            output=_Rate(prices.output),
            cached=None if prices.cached is None else _Rate(prices.cached),
            cache_write=None,
            share=prices.batch_share if batch else Decimal(1),
            basis="project",
        )
    )


@lru_cache(maxsize=4096)
def _listed(provider: str, model: str, day: date, batch: bool) -> Rates | None:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:  # it comes with the provider's extra
        return None
    at = datetime.combine(day, time(12), UTC)
    try:
        _, info = get_snapshot().find_provider_model(
            _bare(model), None, _LISTS.get(provider, provider), None
        )
    except LookupError:
        return None
    plain = _rates(info.get_prices(at), Decimal(1), "plain")
    if not batch or plain is None:
        return plain
    variants = info.price_variants or ()
    if any(
        variant.when == _BATCH and (variant.constraint is None or variant.constraint.active(at))
        for variant in variants
    ):
        return _rates(info.get_prices(at, _BATCH), Decimal(1), "batch")
    return _rates(info.get_prices(at), _ASSUMED_SHARE, "assumed")


def _rates(prices: Any, share: Decimal, basis: Basis) -> Rates | None:
    rates = Rates(
        input=_rate(prices.input_mtok),
        output=_rate(prices.output_mtok),
        cached=_rate(prices.cache_read_mtok),
        cache_write=_rate(prices.cache_write_mtok),
        share=share,
        basis=basis,
    )
    return None if rates.input is None and rates.output is None else _with_flat(rates)


def _with_flat(rates: Rates) -> Rates:
    of_in, of_out = rates.input or _Rate(Decimal(0)), rates.output or _Rate(Decimal(0))
    if of_in.tiers or of_out.tiers:
        return rates
    share = rates.share / _MILLION
    return replace(rates, flat=(of_in.base * share, of_out.base * share))


def _rate(price: Any) -> _Rate | None:
    if price is None or isinstance(price, Decimal):
        return None if price is None else _Rate(price)
    return _Rate(price.base, tuple((tier.start, tier.price) for tier in price.tiers))


def _bare(model: str) -> str:
    """A model's name without what stands before it in Gemini's names and in ARNs."""
    return model.rpartition("/")[2] if model.startswith(("models/", "arn:")) else model
