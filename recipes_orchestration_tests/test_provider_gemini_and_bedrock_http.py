"""What Gemini and Bedrock have in common over HTTP, through their SDKs, against written answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.provider import BatchState, Call, Group, Provider

from . import bedrock_answers_written as bedrock
from . import gemini_answers_written as gemini
from .answering_server import AnsweringServer, Asked, Reply
from .bedrock_answers_written import clients, credentials
from .gemini_answers_written import client

__all__ = ["client", "clients", "credentials"]

pytestmark = pytest.mark.usefixtures("client", "clients", "credentials")

SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
Asking = AbstractContextManager[tuple[Provider, AnsweringServer]]


@dataclass(frozen=True)
class Side:
    """One of them: how it is asked, and how it answers.

    `batch` is the answer for one that goes on, by number and name; `gone`, `busy` and `refused`
    are its errors for what it does not know, for what may work later, and with the words Not now.
    """

    name: str
    group: Group
    asking: Callable[[Callable[[Asked], Reply]], Asking]
    id: Callable[[int], str]
    batch: Callable[[int, str], Any]
    listing: Callable[..., Callable[[Asked], Reply]]
    gone: Reply
    busy: Reply
    refused: Reply
    good: Any


SIDES = {
    "bedrock": Side(
        "bedrock",
        bedrock.GROUP,
        bedrock.asking,
        bedrock.arn,
        bedrock.job,
        bedrock.listing,
        bedrock.error(404, "ResourceNotFoundException"),
        bedrock.error(503, "ServiceUnavailableException"),
        bedrock.error(400, "ValidationException", "Not now."),
        bedrock.CONVERSED,
    ),
    "gemini": Side(
        "gemini",
        gemini.GROUP,
        gemini.asking,
        lambda number: f"batches/b{number}",
        gemini.operation,
        gemini.listing,
        gemini.error(404, "Requested entity was not found."),
        gemini.error(503, "overloaded"),
        gemini.error(400, "Not now."),
        gemini.GOOD,
    ),
}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Side:
    return SIDES[request.param]


def test_the_oldest_of_a_name_wins(side: Side):
    with side.asking(side.listing(side.batch(3, "our-name"), side.batch(2, "our-name"))) as (
        provider,
        _,
    ):
        assert provider.find("our-name", ["a"], SINCE, []) == side.id(2)
        assert provider.find("our-name", ["a"], SINCE, [side.id(2)]) == side.id(3)


def test_a_batch_that_the_provider_has_forgotten(side: Side):
    with side.asking(lambda _: side.gone) as (provider, _):
        status = provider.statuses([side.id(1)])[side.id(1)]
    assert status.state is BatchState.FORGOTTEN


def test_a_404_that_is_not_the_providers_own_forgets_no_batch(side: Side):
    gateway = Reply(404, b"<html>no such page</html>")
    with side.asking(lambda _: gateway) as (provider, _), pytest.raises(ProviderError):
        provider.statuses([side.id(1)])


@pytest.mark.parametrize("id", ["msgbatch_1", "batch_1"])
def test_an_id_that_is_none_of_the_providers_is_forgotten(side: Side, id: str):
    with side.asking(lambda _: Reply()) as (provider, server):
        assert provider.statuses([id])[id].state is BatchState.FORGOTTEN
        assert server.asked == []


def test_a_batch_that_the_list_does_not_name_is_asked_for(side: Side):
    listed = side.listing(side.batch(1, "x"), side.batch(2, "x"))
    replies = iter([listed, lambda _: side.gone])
    with side.asking(lambda asked: next(replies)(asked)) as (provider, server):
        statuses = provider.statuses([side.id(1), side.id(9), side.id(2)])
        assert len(server.asked) == 2
    assert statuses[side.id(9)].state is BatchState.FORGOTTEN
    assert statuses[side.id(1)].state is BatchState.RUNNING


def test_states_are_asked_for_again_after_an_error_of_the_server(side: Side):
    replies = iter([side.busy, Reply(body=side.batch(1, "x"))])
    with side.asking(lambda _: next(replies)) as (provider, server):
        assert provider.statuses([side.id(1)])[side.id(1)].state is BatchState.RUNNING
        assert len(server.asked) == 2


def test_a_cancel_that_fails_while_the_batch_goes_on_is_an_error(side: Side):
    running = Reply(body=side.batch(1, "x"))
    with (
        side.asking(lambda asked: running if asked.method == "GET" else side.refused) as (
            provider,
            _,
        ),
        pytest.raises(ProviderError, match="Not now"),
    ):
        provider.cancel(side.id(1))


def test_a_plain_call_is_made_again_after_an_error_of_the_server(side: Side):
    replies = iter([side.busy, Reply(body=side.good)])
    with side.asking(lambda _: next(replies)) as (provider, server):
        assert provider.plain(Call(side.name, side.group, b'{"a":1}'))[0] == 200
        assert [each.body for each in server.asked] == [b'{"a":1}'] * 2


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        (
            "bedrock",
            bedrock.error(400, "ValidationException", "The provided model identifier is invalid."),
        ),
        (
            "bedrock",
            bedrock.error(403, "AccessDeniedException", "You don't have access to the model"),
        ),
        ("bedrock", bedrock.error(404, "ResourceNotFoundException", "gone")),
        ("bedrock", bedrock.error(400, "ServiceQuotaExceededException", "quota")),
        ("gemini", gemini.error(400, "API key not valid. Please pass a valid API key.")),
        ("gemini", gemini.error(403, "Permission denied")),
        ("gemini", gemini.error(404, "models/gemini-gone was not found")),
    ],
)
def test_a_plain_call_that_the_account_is_to_blame_for(name: str, refusal: Reply):
    side = SIDES[name]
    with side.asking(lambda _: refusal) as (provider, _), pytest.raises(Refused) as caught:
        provider.plain(Call(name, side.group, b"{}"))
    assert caught.value.account


def test_eight_threads_get_each_its_own_answer(side: Side):
    with side.asking(lambda asked: Reply(body={"echo": asked.json})) as (provider, _):
        calls = [Call(side.name, side.group, json.dumps({"n": n}).encode()) for n in range(80)]
        with ThreadPoolExecutor(8) as pool:
            answers = [json.loads(body)["echo"]["n"] for _, body in pool.map(provider.plain, calls)]
    assert answers == list(range(80))
