"""What answers cost, added up: the quick ways give what the prices of each answer give."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from recipes_orchestration.places.cloud.costs import Costs
from recipes_orchestration.providers.prices import ModelPrices, price_of, rates_of
from recipes_orchestration.providers.provider import Group
from recipes_orchestration.steps.ask import Answer, Stop, Usage

AT = datetime(2026, 11, 1, tzinfo=UTC)
USAGES = [
    Usage(812, 97),
    Usage(0, 3),
    Usage(1, 0),
    Usage(900, 40, tokens_cached=500),
    Usage(900, 40, tokens_cache_write=300),
    Usage(300_000, 12),
]
OWN = {"gpt-4o": ModelPrices(Decimal("1.23"), Decimal("4.5"), batch_share=Decimal("0.4"))}
MODELS = [
    ("openai", "gpt-4o", {}),
    ("openai", "gpt-4o", OWN),
    ("anthropic", "claude-sonnet-4-5", {}),  # its price rises with the length of the question
    ("gemini", "gemini-2.5-pro", {}),
    ("bedrock", "anthropic.claude-3-haiku-20240307-v1:0", {}),
]
each = pytest.mark.parametrize(("provider", "model", "own"), MODELS)


@each
@pytest.mark.parametrize("batch", [True, False])
def test_the_quick_sum_is_the_sum(
    provider: str, model: str, own: dict[str, ModelPrices], batch: bool
):
    rates = rates_of(provider, model, AT, batch=batch, overrides=own)
    assert rates is not None
    for usage in USAGES:
        assert rates.usd(usage) == replace(rates, flat=None).usd(usage)


@each
def test_what_was_saved_is_the_difference_to_plain_calls(
    provider: str, model: str, own: dict[str, ModelPrices]
):
    named: Any = SimpleNamespace(name=provider)
    group = Group("/route", model)
    costs = Costs(named, group, "batch", own, AT)
    saved = landed = Decimal(0)
    for usage in USAGES:
        spent = costs.spent(group, Answer(Stop.COMPLETE, usage, model=model))
        costs.add(spent, wasted=False)
        batch = price_of(provider, model, usage, AT, batch=True, overrides=own).usd
        plain = price_of(provider, model, usage, AT, batch=False, overrides=own).usd
        assert batch is not None
        assert plain is not None
        assert spent.usd == batch
        saved += plain - batch
        landed += batch
    bill = costs.bill({})
    assert (bill.saved_usd, bill.landed_usd) == (saved, landed)


def test_a_model_without_a_price_saves_nothing_that_is_known():
    named: Any = SimpleNamespace(name="openai")
    group = Group("/route", "nobody-knows-it")
    costs = Costs(named, group, "batch", {}, AT)
    spent = costs.spent(group, Answer(Stop.COMPLETE, USAGES[0]))
    assert (spent.usd, spent.basis) == (None, "unknown")
    assert costs.bill({}).saved_usd == 0
