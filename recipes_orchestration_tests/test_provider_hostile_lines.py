"""Result lines and answers of any shape at all: Anthropic's and OpenAI's readers never break."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.provider import Group, Provider
from recipes_orchestration.providers.registry import open_provider

WORDS = (
    *("custom_id", "result", "type", "message", "error", "succeeded", "errored", "expired"),
    *("content", "text", "tool_use", "name", "answer_value", "input", "stop_reason", "end_turn"),
    *("usage", "input_tokens", "stop_details", "details", "error_code", "not_found_error"),
    *("response", "status_code", "body", "code", "choices", "finish_reason", "stop", "refusal"),
    *("prompt_tokens", "prompt_tokens_details", "cached_tokens", "data", "embedding", "model"),
    *("output", "status", "completed", "output_text", "incomplete_details", "reason"),
)
NAMES = st.sampled_from(WORDS) | st.text(max_size=3)
SINGLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**310)
    | st.floats()
    | NAMES
    | st.text(st.characters(codec=None), max_size=9)
)
VALUES = st.recursive(
    SINGLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=8)
FEW = settings(max_examples=60, deadline=None)
ROUTES = st.sampled_from(["/v1/messages", "/v1/chat/completions", "/v1/responses"]) | st.just(
    "/v1/embeddings"
)


@pytest.fixture(params=["anthropic", "openai"], scope="module")
def provider(request: pytest.FixtureRequest) -> Provider:
    return open_provider(request.param)


@FEW
@given(line=st.binary())
def test_any_bytes_can_be_read_as_a_line(provider: Provider, line: bytes):
    provider.read_line(line)


@FEW
@given(entry=OBJECTS, result=OBJECTS)
def test_any_json_can_be_read_as_a_line(
    provider: Provider, entry: dict[str, Any], result: dict[str, Any]
):
    for field in ("result", "response", "error"):
        line = provider.read_line(json.dumps({**entry, "custom_id": "a", field: result}).encode())
        if line is not None:
            line.words.encode()


@FEW
@given(body=OBJECTS, route=ROUTES)
def test_any_json_is_an_answer_or_a_step_error(
    provider: Provider, body: dict[str, Any], route: str
):
    with suppress(StepError):
        answer = provider.answer(Group(route, "m"), json.loads(json.dumps(body)))
        (answer.text + answer.words + (answer.model or "")).encode()


@FEW
@given(
    status=st.integers(100, 599), body=st.binary() | OBJECTS.map(lambda v: json.dumps(v).encode())
)
def test_any_plain_response_makes_a_line_of_one_line(provider: Provider, status: int, body: bytes):
    line = provider.result_line("a", status, body)
    assert b"\n" not in line
    provider.read_line(line)
