"""Tokens of pictures: the examples that the providers' own pages give."""

from __future__ import annotations

import pytest

from recipes_orchestration.providers.image_tokens import image_tokens
from recipes_orchestration.rehearsal.image_tokens import picture_tokens

OPUS = "claude-opus-4-8"
SONNET = "claude-sonnet-4-6"

# Provider, model, width, height, detail, tokens.
EXAMPLES = [
    ("anthropic", SONNET, 1000, 1000, None, 1296),
    ("anthropic", SONNET, 1920, 1080, None, 1560),
    ("anthropic", "claude-haiku-4-5-20251001", 1920, 1080, None, 1560),
    ("anthropic", "claude-opus-4-20250514", 1920, 1080, None, 1560),
    ("anthropic", "claude-3-5-haiku-latest", 1920, 1080, None, 1560),
    ("anthropic", OPUS, 1920, 1080, None, 2691),
    ("anthropic", OPUS, 3840, 2160, None, 4784),
    ("anthropic", OPUS, 3024, 1964, None, 4760),
    ("anthropic", "claude-sonnet-5", 4032, 3024, None, 4740),
    ("bedrock", "us.anthropic.claude-sonnet-4-6-v1:0", 1920, 1080, None, 1560),
    ("bedrock", "anthropic.claude-3-haiku-20240307-v1:0", 1920, 1080, None, 1560),
    ("bedrock", "amazon.nova-lite-v1:0", 900, 900, None, 1300),
    ("bedrock", "amazon.nova-lite-v1:0", 1800, 900, None, 2400),
    ("bedrock", "us.amazon.nova-2-lite-v1:0", 1800, 900, None, 230),
    ("openai", "gpt-4o", 1024, 1024, None, 765),
    ("openai", "gpt-4o", 2048, 4096, "high", 1105),
    ("openai", "gpt-4o", 4096, 8192, "low", 85),
    ("openai", "gpt-5", 1024, 1024, None, 630),
    ("openai", "gpt-4.1-mini", 1024, 1024, None, 1659),
    ("openai", "gpt-4.1-mini-2025-04-14", 1800, 2400, None, 2353),
    ("openai", "gpt-5.2", 1800, 2400, "auto", 1452),
    ("openai", "gpt-5.6", 1800, 2400, None, 4275),
    ("gemini", "gemini-2.5-flash", 300, 384, None, 258),
    ("gemini", "gemini-2.5-pro", 960, 540, None, 1548),
    ("gemini", "gemini-3-flash-preview", 960, 540, None, 1120),
    ("gemini", "gemini-3-pro", 960, 540, "MEDIA_RESOLUTION_LOW", 280),
]


@pytest.mark.parametrize(("provider", "model", "width", "height", "detail", "tokens"), EXAMPLES)
def test_a_picture_costs_what_the_providers_page_says(
    provider: str, model: str, width: int, height: int, detail: str | None, tokens: int
) -> None:
    assert image_tokens(provider, model, width, height, detail) == tokens
    assert image_tokens(provider, model, height, width, detail) == tokens


@pytest.mark.parametrize(("provider", "model", "width", "height", "detail", "tokens"), EXAMPLES)
def test_the_rehearsal_counts_a_picture_by_the_same_page(
    provider: str, model: str, width: int, height: int, detail: str | None, tokens: int
) -> None:
    assert picture_tokens(provider, model, (width, height), detail or "") == tokens


def test_no_picture_is_too_long_or_too_small_for_a_rule() -> None:
    models = {provider: model for provider, model, *_ in EXAMPLES}
    for provider, model in models.items():
        for size in ((1, 1), (1, 8000), (8000, 1), (8000, 8000), (5, 3000)):
            assert image_tokens(provider, model, *size) > 0
            assert picture_tokens(provider, model, size) > 0
