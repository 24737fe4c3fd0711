"""Plain calls of Gemini over HTTP, against answers that each test writes."""

from __future__ import annotations

import json

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.gemini_provider import GeminiProvider
from recipes_orchestration.providers.provider import Call
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Text

from .answering_server import LOST, Reply
from .gemini_answers_written import (
    GOOD,
    GROUP,
    MODEL,
    SECRET,
    asking,
    client,
    error,
    one_try,
)

__all__ = ["client", "one_try"]

pytestmark = pytest.mark.usefixtures("client")


def test_a_plain_call_sends_the_bytes_of_the_body():
    ask = Ask((Text("x\u2028y Übung"), Picture(b"\xff\xd8", "image/jpeg")), max_tokens=10)
    with asking(lambda _: Reply(body=GOOD)) as (provider, server):
        call = provider.call(ask, MODEL)
        status, body = provider.plain(call)
    assert (status, json.loads(body)) == (200, GOOD)
    assert server.asked[0].body == call.body
    assert server.asked[0].path == f"/v1/models/{MODEL}:generateContent"
    assert server.asked[0].headers["x-goog-api-key"] == SECRET


def test_a_plain_vector_goes_to_its_own_route():
    answer = {"embedding": {"values": [0.5]}}
    with asking(lambda _: Reply(body=answer)) as (provider, server):
        call = provider.call(EmbedAsk("a"), "gemini-embedding-001")
        assert json.loads(provider.plain(call)[1]) == answer
    assert server.paths() == ["/v1/models/gemini-embedding-001:embedContent"]


def test_an_answer_that_the_sdk_would_not_understand_is_given_as_it_is():
    odd = {"candidates": "none", "finishReason": "BRAND_NEW"}
    with asking(lambda _: Reply(body=odd)) as (provider, _):
        status, body = provider.plain(Call("gemini", GROUP, b"{}"))
    assert (status, json.loads(body)) == (200, odd)


def test_a_page_that_is_refused_is_an_answer():
    with asking(lambda _: error(400, "Unable to process input image.")) as (provider, server):
        status, body = provider.plain(Call("gemini", GROUP, b"{}"))
        assert len(server.asked) == 1
    assert status == 400
    assert json.loads(body)["error"]["message"] == "Unable to process input image."


@pytest.mark.parametrize("reply", [error(503, "overloaded"), error(429, "slow down"), LOST])
def test_a_plain_call_that_never_got_through_is_unknown(reply: Reply, one_try: GeminiProvider):
    with asking(lambda _: reply), pytest.raises(ProviderError) as caught:
        one_try.plain(Call("gemini", GROUP, b"{}"))
    assert not isinstance(caught.value, Refused)


def test_a_plain_call_over_the_quota_of_a_day_is_the_accounts(one_try: GeminiProvider):
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
    details = [{"@type": "x/google.rpc.QuotaFailure", "violations": [violation]}]
    message = "You exceeded your current quota, please check your plan and billing details."
    refusal = error(429, message, details=details)
    with asking(lambda _: refusal), pytest.raises(Refused) as caught:
        one_try.plain(Call("gemini", GROUP, b"{}"))
    assert caught.value.account
