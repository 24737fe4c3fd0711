"""What a request can cost at most, read off the request."""

from __future__ import annotations

import base64
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from PIL import Image

from recipes_orchestration.places.cloud.worst_cases import WorstCases, most_tokens
from recipes_orchestration.providers.anthropic_calls import make_call
from recipes_orchestration.providers.prices import ModelPrices
from recipes_orchestration.providers.provider import Call, Group
from recipes_orchestration.steps.ask import Ask, Picture, Text

ROUTES = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "gemini": ":generateContent",
    "bedrock": "converse",
}


def call(provider: str, body: dict[str, Any], model: str = "a-model") -> Call:
    return Call(provider, Group(ROUTES[provider], model), json.dumps(body).encode())


def picture(width: int = 1000, height: int = 1400) -> bytes:
    stream = io.BytesIO()
    Image.effect_noise((width, height), 50).save(stream, "JPEG", quality=40)
    return stream.getvalue()


def test_a_text_is_at_most_a_token_a_byte() -> None:
    asked = make_call(Ask((Text("ä" * 5000),), 77), "claude-sonnet-4-6")
    bound = most_tokens(asked)
    assert bound.tokens_in >= 10_000
    assert bound.tokens_out == 77


def test_a_picture_counts_by_what_the_provider_makes_of_it() -> None:
    data = picture()
    bound = most_tokens(make_call(Ask((Picture(data, "image/jpeg"),), 5), "claude-sonnet-4-6"))
    assert len(data) > 100_000
    assert bound.tokens_in < 8_000


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_picture_is_known_in_both_alphabets(encode: Any) -> None:
    data = {"inlineData": {"mimeType": "image/jpeg", "data": encode(picture()).decode()}}
    body = {"contents": [{"parts": [data]}], "generationConfig": {"maxOutputTokens": 9}}
    assert most_tokens(call("gemini", body)).tokens_in < 10_000


def test_a_picture_in_a_data_url_is_known() -> None:
    url = f"data:image/jpeg;base64,{base64.b64encode(picture()).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 9}
    assert most_tokens(call("openai", body)).tokens_in < 10_000


def test_base64_that_is_no_picture_counts_by_its_bytes() -> None:
    text = base64.b64encode(bytes(range(256)) * 100).decode()
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 9}
    assert most_tokens(call("openai", body)).tokens_in > len(text)


@pytest.mark.parametrize(
    ("provider", "body", "tokens"),
    [
        ("openai", {"max_completion_tokens": 12}, 12),
        ("openai", {"max_output_tokens": 13}, 13),
        ("openai", {"max_tokens": 10, "n": 3}, 30),
        ("gemini", {"generationConfig": {"maxOutputTokens": 14, "candidateCount": 2}}, 28),
        ("bedrock", {"inferenceConfig": {"maxTokens": 15}}, 15),
        ("bedrock", {"textGenerationConfig": {"maxTokenCount": 16}}, 16),
    ],
)
def test_the_longest_answer_is_found_where_each_api_has_it(
    provider: str, body: dict[str, Any], tokens: int
) -> None:
    assert most_tokens(call(provider, body)).tokens_out == tokens


def test_an_embedding_answers_nothing() -> None:
    asked = Call("openai", Group("/v1/embeddings", "text-embedding-3-small"), b'{"input":"a"}')
    assert (most_tokens(asked).tokens_out, most_tokens(asked).unknown) == (0, "")


def test_an_answer_without_a_bound_may_cost_anything() -> None:
    assert "max_tokens" in most_tokens(call("openai", {"messages": []})).unknown


@pytest.mark.parametrize(
    "part", [{"file_id": "file-1"}, {"image_url": {"url": "https://example.org/a.png"}}]
)
def test_what_lies_elsewhere_may_cost_anything(part: dict[str, Any]) -> None:
    body = {"max_tokens": 5, "messages": [{"role": "user", "content": [part]}]}
    assert "not in it" in most_tokens(call("openai", body)).unknown


def test_the_dollars_are_those_of_the_way_it_goes() -> None:
    asked = call("openai", {"max_tokens": 1_000_000}, "own")
    prices = {"own": ModelPrices(Decimal(0), Decimal(8), batch_share=Decimal("0.25"))}
    worst = WorstCases("openai", asked.group, prices)
    worst.add(asked)
    assert worst.usd(batch=True) == (Decimal(2), "")
    assert worst.usd(batch=False) == (Decimal(8), "")
    worst.add(asked)
    assert worst.usd(batch=True) == (Decimal(4), "")


def test_a_model_without_a_price_is_named() -> None:
    asked = call("openai", {"max_tokens": 5}, "our-own-model")
    worst = WorstCases("openai", asked.group, {})
    worst.add(asked)
    usd, why = worst.usd(batch=True)
    assert usd is None
    assert why == "The price of model our-own-model is not known: give it under prices:"
