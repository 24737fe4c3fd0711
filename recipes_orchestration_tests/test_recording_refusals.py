"""Capture refuses what no batch can carry, in words that name it and say what to do."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest

from recipes_orchestration.errors import NotBatchable, StepError
from recipes_orchestration.providers.recording import Clients, Recorder

from .recorded_steps import ANTHROPIC, BEDROCK, GEMINI, OPENAI, Told, ask_anthropic, ask_openai
from .recording_fixtures import no_keys, recorder_for

__all__ = ["no_keys", "recorder_for"]

Make = Callable[..., Recorder]
Step = Callable[[Any], Any]
HI = [{"role": "user", "content": "Hi"}]
CONVERSATION = [{"role": "user", "content": [{"text": "Hi"}]}]


def anthropic_helper(client: Any) -> None:
    with client.messages.stream(model="m", max_tokens=5, messages=HI) as stream:
        stream.get_final_message()


def gemini_stream(client: Any) -> None:
    list(client.models.generate_content_stream(model="m", contents="Hi"))


STREAMS: list[tuple[Told, Step, str]] = [
    (ANTHROPIC, lambda c: ask_anthropic(c, "Hi", stream=True), "/v1/messages"),
    (ANTHROPIC, anthropic_helper, "/v1/messages"),
    (OPENAI, lambda c: ask_openai(c, "Hi", stream=True), "/v1/chat/completions"),
    (OPENAI, lambda c: c.responses.create(model="m", input="Hi", stream=True), "/v1/responses"),
    (GEMINI, gemini_stream, "streamGenerateContent"),
    (BEDROCK, lambda c: c.converse_stream(modelId="m", messages=CONVERSATION), "ConverseStream"),
    (
        BEDROCK,
        lambda c: c.invoke_model_with_response_stream(modelId="m", body="{}"),
        "InvokeModelWithResponseStream",
    ),
]
OTHERS: list[tuple[Told, Step, str]] = [
    (ANTHROPIC, lambda c: c.models.list(), "GET /v1/models"),
    (
        ANTHROPIC,
        lambda c: c.messages.count_tokens(model="m", messages=HI),
        "POST /v1/messages/count_tokens",
    ),
    (ANTHROPIC, lambda c: c.messages.batches.list(), "GET /v1/messages/batches"),
    (ANTHROPIC, lambda c: c.beta.files.upload(file=io.BytesIO(b"x")), "POST /v1/files"),
    (OPENAI, lambda c: c.models.list(), "GET /v1/models"),
    (
        OPENAI,
        lambda c: c.files.create(file=io.BytesIO(b"x"), purpose="user_data"),
        "POST /v1/files",
    ),
    (OPENAI, lambda c: c.images.generate(prompt="a page"), "POST /v1/images/generations"),
    (GEMINI, lambda c: c.models.list(), "GET /v1/models"),
    (GEMINI, lambda c: c.models.count_tokens(model="m", contents="Hi"), "countTokens"),
    (
        GEMINI,
        lambda c: c.files.upload(file=io.BytesIO(b"x"), config={"mime_type": "image/png"}),
        "POST /upload/v1/files",
    ),
    (
        BEDROCK,
        lambda c: c.count_tokens(modelId="m", input={"converse": {"messages": CONVERSATION}}),
        "CountTokens",
    ),
]


@pytest.mark.parametrize(("told", "ask", "route"), STREAMS)
def test_a_stream_is_refused_with_its_route(told: Told, ask: Step, route: str, recorder_for: Make):
    with pytest.raises(NotBatchable, match="Ask without streaming") as refused:
        recorder_for(told).capture(lambda clients: ask(clients.client))
    assert route in str(refused.value)


@pytest.mark.parametrize(("told", "ask", "named"), OTHERS)
def test_what_is_no_question_is_refused(told: Told, ask: Step, named: str, recorder_for: Make):
    with pytest.raises(NotBatchable, match="which no batch can carry") as refused:
        recorder_for(told).capture(lambda clients: ask(clients.client))
    assert named in str(refused.value)


def test_an_asynchronous_stream_is_refused(recorder_for: Make):
    async def ask(client: Any) -> None:
        async with client.messages.stream(model="m", max_tokens=5, messages=HI):
            pass

    with pytest.raises(NotBatchable, match="Ask without streaming"):
        recorder_for(ANTHROPIC).capture(lambda clients: asyncio.run(ask(clients.async_client)))


def test_converse_with_tools_is_refused(recorder_for: Make):
    tool = {"name": "answer", "inputSchema": {"json": {"type": "object"}}}

    def step(clients: Clients) -> Any:
        return clients.client.converse(
            modelId="m", messages=CONVERSATION, toolConfig={"tools": [{"toolSpec": tool}]}
        )

    with pytest.raises(NotBatchable, match=r"`toolConfig`.*Ask for JSON in the prompt"):
        recorder_for(BEDROCK).capture(step)


def test_what_invoke_model_sends_as_a_header_is_refused(recorder_for: Make):
    def step(clients: Clients) -> Any:
        return clients.client.invoke_model(
            modelId="m", body="{}", guardrailIdentifier="abc", guardrailVersion="1"
        )

    with pytest.raises(NotBatchable, match="`guardrailIdentifier`"):
        recorder_for(BEDROCK).capture(step)


def test_an_invoke_model_body_that_is_no_json_is_refused(recorder_for: Make):
    with pytest.raises(NotBatchable, match="no JSON object"):
        recorder_for(BEDROCK).capture(lambda c: c.client.invoke_model(modelId="m", body=b"\x00"))


def test_several_vectors_in_one_request_of_gemini_are_refused(recorder_for: Make):
    with pytest.raises(NotBatchable, match="asks for 2 vectors in one request"):
        recorder_for(GEMINI).capture(
            lambda c: c.client.models.embed_content(model="m", contents=["one", "two"])
        )


def test_code_that_swallows_the_refusal_is_refused_all_the_same(recorder_for: Make):
    def step(clients: Clients) -> Any:
        try:
            return list(clients.client.models.list())
        except BaseException:  # noqa: BLE001 - as in a user's code
            return ask_anthropic(clients.client, "Hi")

    with pytest.raises(NotBatchable, match="GET /v1/models"):
        recorder_for(ANTHROPIC).capture(step)


def test_bedrock_says_that_it_has_no_asynchronous_client(recorder_for: Make):
    with pytest.raises(StepError, match="no asynchronous client"):
        recorder_for(BEDROCK).capture(lambda clients: clients.async_client.converse(modelId="m"))
