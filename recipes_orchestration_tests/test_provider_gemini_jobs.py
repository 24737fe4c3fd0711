"""Gemini's batches over HTTP: found, asked how they stand, read and cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.gemini_provider import GeminiProvider
from recipes_orchestration.providers.provider import BatchState

from .answering_server import Asked, Reply
from .gemini_answers_written import (
    GOOD,
    SINCE,
    asking,
    client,
    error,
    listing,
    operation,
)

__all__ = ["client"]

pytestmark = pytest.mark.usefixtures("client")


def test_a_batch_is_found_by_its_name():
    answer = listing(operation(3, "other"), operation(2, "our-name"), operation(1, "our-name-2"))
    with asking(answer) as (provider, _):
        assert provider.find("our-name", ["a"], SINCE, []) == "batches/b2"
        assert provider.find("no-name", ["a"], SINCE, []) is None


def test_the_list_is_read_back_to_the_time_of_asking_and_no_further():
    old = operation(1, "our-name")
    old["metadata"]["createTime"] = "2026-11-01T00:00:00Z"
    pages = [
        {"operations": [operation(2, "x")], "nextPageToken": "1"},
        {"operations": [old, operation(3, "our-name")], "nextPageToken": "2"},
        {"operations": [{**old, "name": "batches/old"}], "nextPageToken": "3"},
    ]

    def answer(asked: Asked) -> Reply:
        return Reply(body=pages[int(asked.path.partition("pageToken=")[2] or 0)])

    with asking(answer) as (provider, server):
        assert provider.find("our-name", ["a"], SINCE, ["batches/b1"]) is not None
        assert len(server.asked) == 3


def state_of(batch: Any) -> Any:
    with asking(lambda _: Reply(body=batch)) as (provider, _):
        return provider.statuses(["batches/b1"])["batches/b1"]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "UNSPECIFIED"])
def test_a_batch_that_goes_on(state: str):
    stats = {"requestCount": "10", "successfulRequestCount": "4", "failedRequestCount": "1"}
    status = state_of(operation(1, state=f"BATCH_STATE_{state}", batchStats=stats))
    assert status.state is BatchState.RUNNING
    assert (status.answered, status.requests) == (5, 10)
    assert status.words == f"BATCH_STATE_{state}, 5 of 10 answered"


@pytest.mark.parametrize("state", ["SUCCEEDED", "CANCELLED", "PARTIALLY_SUCCEEDED"])
def test_a_batch_that_has_ended(state: str):
    status = state_of(operation(1, state=f"JOB_STATE_{state}"))
    assert (status.state, status.expired) == (BatchState.ENDED, False)


def test_a_batch_that_expired_after_a_day_of_pending_has_ended_without_lines():
    expired = operation(1, state="BATCH_STATE_EXPIRED")
    with asking(lambda _: Reply(body=expired)) as (provider, _):
        status = provider.statuses(["batches/b1"])["batches/b1"]
        assert (status.state, status.expired) == (BatchState.ENDED, True)
        assert list(provider.results("batches/b1")) == []


def test_a_batch_that_failed_says_why():
    failed = operation(1, state="BATCH_STATE_FAILED")
    failed |= {"done": True, "error": {"code": 3, "message": "File is not JSONL."}}
    status = state_of(failed)
    assert (status.state, status.account) == (BatchState.FAILED, False)
    assert "File is not JSONL." in status.words


def test_a_batch_that_failed_for_the_accounts_reasons():
    failed = operation(1, state="BATCH_STATE_FAILED")
    failed["error"] = {"code": 8, "message": "quota"}
    assert state_of(failed).account


def test_a_batch_that_failed_and_left_responses_has_ended():
    failed = operation(1, state="BATCH_STATE_FAILED", output={"responsesFile": "files/r"})
    assert state_of(failed).state is BatchState.ENDED


def test_a_key_that_no_header_can_hold_is_refused_without_its_words():
    provider = GeminiProvider(api_key="secret\nkey")
    with pytest.raises(Refused) as caught:
        provider.statuses(["batches/b1"])
    assert "secret" not in str(caught.value)


def test_many_batches_take_one_page_of_the_list_for_a_hundred():
    def answer(asked: Asked) -> Reply:
        page = int(asked.path.partition("pageToken=")[2] or 0)
        operations = [operation(number) for number in range(page * 100, page * 100 + 100)]
        return Reply(body={"operations": operations, "nextPageToken": str(page + 1)})

    ids = [f"batches/b{number}" for number in range(1000)]
    with asking(answer) as (provider, server):
        assert provider.statuses(ids).keys() == set(ids)
        assert len(server.asked) == 10


def results_of(content: bytes) -> list[bytes]:
    done = operation(1, state="BATCH_STATE_SUCCEEDED", output={"responsesFile": "files/r1"})

    def answer(asked: Asked) -> Reply:
        if "files/r1:download" in asked.path:
            return Reply(body=content, headers={"Content-Type": "application/octet-stream"})
        return Reply(body=done)

    with asking(answer) as (provider, _):
        return list(provider.results("batches/b1"))


def test_results_are_cut_at_line_feeds_alone():
    lines = [b'{"a": "\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\\r"}', b'{"b": 1}', b"\xff\xfe", b"null"]
    assert results_of(b"\n".join(lines) + b"\n\n") == lines


def test_inlined_responses_are_lines_too():
    inlined = [{"metadata": {"key": "a"}, "response": GOOD}, {"response": GOOD}]
    done = operation(
        1, state="BATCH_STATE_SUCCEEDED", output={"inlinedResponses": {"inlinedResponses": inlined}}
    )
    with asking(lambda _: Reply(body=done)) as (provider, _):
        lines = [provider.read_line(line) for line in provider.results("batches/b1")]
    assert [line.id if line else None for line in lines] == ["a", None]


@pytest.mark.parametrize("status", [403, 404])
def test_results_that_are_gone_are_an_error_and_not_the_accounts(status: int):
    done = operation(1, state="BATCH_STATE_SUCCEEDED", output={"responsesFile": "files/r1"})
    gone = error(status, "You do not have permission to access the File r1 or it may not exist.")

    def answer(asked: Asked) -> Reply:
        return gone if ":download" in asked.path else Reply(body=done)

    with asking(answer) as (provider, _), pytest.raises(ProviderError, match="any more") as caught:
        list(provider.results("batches/b1"))
    assert not isinstance(caught.value, Refused)


def test_a_batch_is_cancelled():
    with asking(lambda _: Reply()) as (provider, server):
        provider.cancel("batches/b1")
        assert server.paths("POST") == ["/v1/batches/b1:cancel"]


@pytest.mark.parametrize("stands", [Reply(body=operation(1, state="BATCH_STATE_SUCCEEDED"))])
def test_cancelling_what_has_ended_is_no_error(stands: Reply):
    refusal = error(400, "Batch has ended.")
    with asking(lambda asked: stands if asked.method == "GET" else refusal) as (provider, _):
        provider.cancel("batches/b1")
