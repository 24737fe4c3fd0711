"""Plain calls of Bedrock over HTTP, against answers that each test writes."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.provider import Call, Group
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Text

from .answering_server import LOST, Reply
from .bedrock_answers_written import (
    CONVERSED,
    GROUP,
    MODEL,
    asking,
    clients,
    credentials,
    error,
)

__all__ = ["clients", "credentials"]

pytestmark = pytest.mark.usefixtures("clients", "credentials")


@pytest.mark.parametrize(
    "model", [MODEL, f"arn:aws:bedrock:us-east-1:111122223333:inference-profile/{MODEL}"]
)
def test_a_plain_call_sends_the_bytes_of_the_body(model: str):
    ask = Ask((Text("x\u2028y Übung"), Picture(b"\xff\xd8", "image/jpeg")), max_tokens=10)
    with asking(lambda _: Reply(body=CONVERSED)) as (provider, server):
        call = provider.call(ask, model)
        status, body = provider.plain(call)
    assert (status, json.loads(body)) == (200, CONVERSED)
    assert server.asked[0].body == call.body
    assert unquote(server.asked[0].path) == f"/model/{model}/converse"
    assert server.asked[0].headers["content-type"] == "application/json"


def test_a_plain_vector_goes_to_its_own_route():
    answer = {"embedding": [0.5], "inputTextTokenCount": 1}
    with asking(lambda _: Reply(body=answer)) as (provider, server):
        call = provider.call(EmbedAsk("a"), "amazon.titan-embed-text-v2:0")
        assert json.loads(provider.plain(call)[1]) == answer
    assert unquote(server.paths()[0]) == "/model/amazon.titan-embed-text-v2:0/invoke"
    assert server.asked[0].body == call.body


@pytest.mark.parametrize("group", [GROUP, Group("invoke", MODEL)])
@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "ValidationException", "Could not process image"),
        error(408, "ModelTimeoutException", "took too long"),
        error(424, "ModelErrorException", "failed"),
    ],
)
def test_a_page_that_is_refused_is_an_answer(group: Group, refusal: Reply):
    with asking(lambda _: refusal) as (provider, server):
        status, body = provider.plain(Call("bedrock", group, b"{}"))
        assert len(server.asked) == 1
    assert (status, json.loads(body)) == (refusal.status, refusal.body)


@pytest.mark.parametrize(
    "reply",
    [
        error(503, "ServiceUnavailableException"),
        error(429, "ThrottlingException", "Too many requests"),
        LOST,
    ],
)
def test_a_plain_call_that_never_got_through_is_unknown(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
):
    from recipes_orchestration.providers import bedrock_aws

    # One try, where a test would wait for the SDK's pauses between its five.
    monkeypatch.setattr(bedrock_aws.Aws._client, "__defaults__", (1,))
    with (
        asking(lambda _: reply, timeout=8) as (provider, _),
        pytest.raises(ProviderError) as caught,
    ):
        provider.plain(Call("bedrock", GROUP, b"{}"))
    assert not isinstance(caught.value, Refused)
