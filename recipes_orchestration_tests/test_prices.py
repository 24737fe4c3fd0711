"""What answers cost: as genai-prices says, by the project's own prices, or by a marked guess."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices import calc_price

from recipes_orchestration.providers.prices import ModelPrices, Price, price_of
from recipes_orchestration.steps.ask import Usage

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
LISTS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google", "bedrock": "aws"}

# With and without tiers, with and without prices of their own for what a cache holds.
MODELS = [
    ("anthropic", "claude-sonnet-4-6"),
    ("anthropic", "claude-sonnet-4-5-20250929"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai", "gpt-5-mini-2025-08-07"),
    ("openai", "gpt-4o"),
    ("openai", "text-embedding-3-small"),
    ("gemini", "gemini-2.5-pro"),
    ("gemini", "gemini-2.5-flash"),
    ("gemini", "gemini-embedding-001"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("bedrock", "amazon.nova-lite-v1:0"),
]
USAGES = [
    Usage(),
    Usage(1200, 340),
    Usage(1200, 340, tokens_cached=1000),
    Usage(1200, 340, tokens_cached=300, tokens_cache_write=700),
    Usage(200_000, 5),
    Usage(200_001, 5, tokens_cached=7),
    Usage(900_000, 60_000, tokens_cached=100_000, tokens_cache_write=50_000),
]


def listed(provider: str, model: str, usage: Usage, context: dict[str, str] | None) -> Decimal:
    counts: Any = genai_prices.Usage(
        input_tokens=usage.tokens_in,
        output_tokens=usage.tokens_out,
        cache_read_tokens=usage.tokens_cached,
        cache_write_tokens=usage.tokens_cache_write,
    )
    return calc_price(
        counts,
        model,
        provider_id=LISTS[provider],
        genai_request_timestamp=AT,
        price_context=context,
    ).total_price


@pytest.mark.parametrize("usage", USAGES, ids=str)
@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_plain_calls_cost_what_the_list_says(provider: str, model: str, usage: Usage) -> None:
    price = price_of(provider, model, usage, AT, batch=False)
    assert price == Price(listed(provider, model, usage, None), "plain")


@pytest.mark.parametrize("usage", USAGES, ids=str)
@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_batches_cost_what_the_list_says_or_half(provider: str, model: str, usage: Usage) -> None:
    price = price_of(provider, model, usage, AT, batch=True)
    if price.basis == "batch":
        assert price.usd == listed(provider, model, usage, {"processing": "batch"})
    else:
        assert price == Price(listed(provider, model, usage, None) / 2, "assumed")


def test_batch_prices_are_found() -> None:
    bases = {
        model: price_of(provider, model, Usage(), AT, batch=True).basis
        for provider, model in MODELS
    }
    assert bases["claude-sonnet-4-6"] == "batch"
    assert bases["gpt-5-mini-2025-08-07"] == "batch"
    assert bases["gemini-2.5-flash"] == "batch"
    assert bases["us.anthropic.claude-sonnet-4-5-20250929-v1:0"] == "assumed"


def test_prices_are_those_of_the_day_of_the_call() -> None:
    # The batch price of this model is listed from 14 October 2026 on.
    model, usage = "claude-sonnet-4-6", Usage(1_000_000, 0)
    before = price_of("anthropic", model, usage, datetime(2026, 10, 13, tzinfo=UTC), batch=True)
    after = price_of("anthropic", model, usage, datetime(2026, 10, 14, tzinfo=UTC), batch=True)
    assert (before.basis, after.basis) == ("assumed", "batch")


@pytest.mark.parametrize(
    "model",
    [
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/"
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0",
    ],
)
def test_names_of_bedrock_are_understood(model: str) -> None:
    plain = price_of(
        "bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0", USAGES[1], AT, batch=False
    )
    assert plain.usd
    assert price_of("bedrock", model, USAGES[1], AT, batch=False) == plain


def test_a_global_profile_of_bedrock_has_its_own_price() -> None:
    usage = Usage(1_000_000, 0)
    of_region = price_of(
        "bedrock", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", usage, AT, batch=False
    )
    of_all = price_of(
        "bedrock", "global.anthropic.claude-haiku-4-5-20251001-v1:0", usage, AT, batch=False
    )
    assert of_region.usd is not None
    assert of_all.usd is not None
    assert of_region.usd > of_all.usd


def test_long_names_of_gemini_are_understood() -> None:
    short = price_of("gemini", "gemini-2.5-flash", USAGES[1], AT, batch=True)
    assert price_of("gemini", "models/gemini-2.5-flash", USAGES[1], AT, batch=True) == short


@pytest.mark.parametrize("provider", LISTS)
def test_an_unknown_model_has_no_price(provider: str) -> None:
    assert price_of(provider, "nobody-knows-it", Usage(5, 5), AT, batch=True) == Price(
        None, "unknown"
    )


def test_prices_of_the_project_win() -> None:
    own = {"gpt-4o": ModelPrices(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("0.25"))}
    usage = Usage(1_000_000, 100_000, tokens_cached=500_000)
    plain = price_of("openai", "gpt-4o", usage, AT, batch=False, overrides=own)
    assert plain == Price(Decimal("3.15"), "project")
    batch = price_of("openai", "gpt-4o", usage, AT, batch=True, overrides=own)
    assert batch == Price(Decimal("0.7875"), "project")


def test_counts_that_cannot_be_are_no_crash() -> None:
    price = price_of("openai", "gpt-4o", Usage(5, 0, tokens_cached=500), AT, batch=False)
    assert price.usd == Decimal("1.25") * 500 / 1_000_000


def test_prices_are_quick() -> None:
    price_of("anthropic", "claude-sonnet-4-5", Usage(1, 1), AT, batch=True)
    started = time.process_time()
    for count in range(20_000):
        price_of("anthropic", "claude-sonnet-4-5", Usage(count, 7, 3), AT, batch=True)
    assert time.process_time() - started < 0.6  # some 0.1 s on a quiet machine
