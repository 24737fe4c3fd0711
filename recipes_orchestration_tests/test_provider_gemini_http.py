"""Gemini's client over HTTP, through its SDK, against answers that each test writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers import gemini_sdk
from recipes_orchestration.providers.gemini_provider import GeminiProvider
from recipes_orchestration.providers.provider import BatchState, Call, Group
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Text
from recipes_orchestration_tests.answering_server import (
    LOST,
    AnsweringServer,
    Asked,
    Reply,
    running_server,
)

MODEL = "gemini-3-flash"
GROUP = Group(":generateContent", MODEL)
SECRET = "AIzaSyTheSecretKeyOfThisTest"
SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
GOOD = {"candidates": [{"content": {"parts": [{"text": "yes"}]}, "finishReason": "STOP"}]}


KEPT: list[tuple[GeminiProvider, AnsweringServer]] = []


@pytest.fixture(scope="module", autouse=True)
def client() -> Generator[None]:
    """One client for all tests: Google's SDK starts slowly."""
    with running_server(lambda _: Reply()) as server:
        provider = GeminiProvider(base_url=server.url, api_key=SECRET, timeout=10)
        KEPT.append((provider, server))
        yield
        KEPT.clear()
        provider.close()


@contextmanager
def asking(
    answer: Callable[[Asked], Reply],
) -> Generator[tuple[GeminiProvider, AnsweringServer]]:
    provider, server = KEPT[0]
    server.answer = answer
    server.asked.clear()
    yield provider, server


@pytest.fixture
def one_try(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiProvider]:
    """A client without the SDK's pauses between its five tries."""
    monkeypatch.setattr(gemini_sdk, "ATTEMPTS", 1)
    provider = GeminiProvider(base_url=KEPT[0][1].url, api_key=SECRET, timeout=10)
    yield provider
    provider.close()


def error(code: int, message: str, **more: Any) -> Reply:
    return Reply(code, {"error": {"code": code, "message": message, **more}})


def operation(number: int, name: str = "", state: str = "BATCH_STATE_RUNNING", **more: Any) -> Any:
    created = f"2026-11-29T12:{number % 60:02}:00.123456789Z"
    metadata = {"displayName": name, "state": state, "createTime": created, **more}
    return {"name": f"batches/b{number}", "metadata": metadata}


def listing(*operations: Any) -> Callable[[Asked], Reply]:
    return lambda asked: Reply(body={"operations": list(operations)})


def accepting(create: Reply) -> Callable[[Asked], Reply]:
    """Takes uploads, and answers creates so."""

    def answer(asked: Asked) -> Reply:
        if asked.path.startswith("/upload/"):
            return Reply(headers={"X-Goog-Upload-URL": "http://127.0.0.1:1/put-here"})
        if asked.path.startswith("/put-here"):
            final = {"X-Goog-Upload-Status": "final"}
            return Reply(body={"file": {"name": "files/f1"}}, headers=final)
        return create

    return answer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b'{"key":"a","request":{}}\n')
    return path


def test_a_batch_is_a_file_and_a_create(file: Path):
    made = Reply(body={"name": "batches/b1", "metadata": {"state": "BATCH_STATE_PENDING"}})
    with asking(accepting(made)) as (provider, server):
        assert provider.submit("our-name", GROUP, file, ["a"]) == "batches/b1"
        start, put, create = server.asked
    assert start.headers["x-goog-upload-header-content-type"] == "application/jsonl"
    assert put.body == file.read_bytes()
    assert create.path == f"/v1/models/{MODEL}:batchGenerateContent"
    assert create.json == {
        "batch": {"displayName": "our-name", "inputConfig": {"fileName": "files/f1"}}
    }


def test_vectors_have_a_create_of_their_own(file: Path):
    made = Reply(body={"name": "batches/b1"})
    group = Group(":embedContent", "gemini-embedding-001")
    with asking(accepting(made)) as (provider, server):
        provider.submit("our-name", group, file, ["a"])
    create = server.asked[-1]
    assert create.path == "/v1/models/gemini-embedding-001:asyncBatchEmbedContent"
    assert create.json["batch"]["inputConfig"] == {"file_name": "files/f1"}


@pytest.mark.parametrize(
    "create", [error(500, "internal"), error(503, "overloaded"), LOST, Reply(body=b"<html>")]
)
def test_a_create_without_a_clear_answer_is_made_once_and_unknown(file: Path, create: Reply):
    with asking(accepting(create)) as (provider, server):
        with pytest.raises(ProviderError) as caught:
            provider.submit("our-name", GROUP, file, ["a"])
        assert not isinstance(caught.value, Refused)
        assert sum("batchGenerateContent" in path for path in server.paths()) == 1


def test_a_create_without_an_id_is_unknown(file: Path):
    with asking(accepting(Reply(body={}))) as (provider, _), pytest.raises(ProviderError) as caught:
        provider.submit("our-name", GROUP, file, ["a"])
    assert not isinstance(caught.value, Refused)


@pytest.mark.parametrize(
    ("create", "account"),
    [
        (error(400, "Request contains an invalid argument."), False),
        (error(400, "API key not valid. Please pass a valid API key."), True),
        (error(401, "no"), True),
        (error(403, "no"), True),
        (error(404, "models/gone is not found"), True),
        (error(429, "Resource has been exhausted (e.g. check quota)."), True),
    ],
)
def test_a_create_that_is_refused(file: Path, create: Reply, account: bool):
    with asking(accepting(create)) as (provider, _), pytest.raises(Refused) as caught:
        provider.submit("our-name", GROUP, file, ["a"])
    assert caught.value.account is account


def test_the_enqueued_token_limit_says_when_to_come_again(file: Path):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}]
    refusal = error(429, "enqueued tokens", status="RESOURCE_EXHAUSTED", details=details)
    with asking(accepting(refusal)) as (provider, _), pytest.raises(Refused) as caught:
        provider.submit("our-name", GROUP, file, ["a"])
    assert (caught.value.account, caught.value.retry_after) == (True, 37.5)
    assert "RESOURCE_EXHAUSTED: enqueued tokens" in str(caught.value)


def test_a_lost_upload_is_made_again(file: Path):
    calls: list[str] = []
    taking = accepting(Reply(body={"name": "batches/b1"}))

    def answer(asked: Asked) -> Reply:
        calls.append(asked.path)
        return LOST if len(calls) == 2 else taking(asked)

    with asking(answer) as (provider, _):
        assert provider.submit("our-name", GROUP, file, ["a"]) == "batches/b1"


def test_a_model_name_that_is_no_name_is_refused_before_anything_is_sent(file: Path):
    with asking(lambda _: Reply()) as (provider, server):
        with pytest.raises(Refused, match="cannot stand in an address"):
            provider.submit("our-name", Group(":generateContent", "../files"), file, ["a"])
        assert server.asked == []


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(Refused, match="GEMINI_API_KEY") as caught:
        GeminiProvider().statuses(["batches/b1"])
    assert caught.value.account


def test_a_key_is_in_no_message(file: Path):
    refusal = error(400, f"API key {SECRET} not valid")
    with asking(accepting(refusal)) as (provider, _), pytest.raises(Refused) as caught:
        provider.submit("our-name", GROUP, file, ["a"])
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_batch_is_found_by_its_name():
    answer = listing(operation(3, "other"), operation(2, "our-name"), operation(1, "our-name-2"))
    with asking(answer) as (provider, _):
        assert provider.find("our-name", ["a"], SINCE, []) == "batches/b2"
        assert provider.find("no-name", ["a"], SINCE, []) is None


def test_the_oldest_of_a_name_wins():
    answer = listing(operation(3, "our-name"), operation(2, "our-name"))
    with asking(answer) as (provider, _):
        assert provider.find("our-name", ["a"], SINCE, []) == "batches/b2"
        assert provider.find("our-name", ["a"], SINCE, ["batches/b2"]) == "batches/b3"


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


def test_a_batch_that_google_has_forgotten():
    with asking(lambda _: error(404, "Requested entity was not found.")) as (provider, _):
        status = provider.statuses(["batches/b1"])["batches/b1"]
    assert status.state is BatchState.FORGOTTEN


def test_a_404_that_is_not_googles_own_forgets_no_batch():
    gateway = Reply(404, b"<html>no such page</html>")
    with asking(lambda _: gateway) as (provider, _), pytest.raises(ProviderError):
        provider.statuses(["batches/b1"])


def test_an_id_that_is_no_batch_is_forgotten():
    with asking(lambda _: Reply()) as (provider, server):
        assert provider.statuses(["msgbatch_1"])["msgbatch_1"].state is BatchState.FORGOTTEN
        assert server.asked == []


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


def test_a_batch_that_the_list_does_not_name_is_asked_for():
    def answer(asked: Asked) -> Reply:
        if "/batches/b9" in asked.path:
            return error(404, "gone")
        return Reply(body={"operations": [operation(1), operation(2)]})

    with asking(answer) as (provider, server):
        statuses = provider.statuses(["batches/b1", "batches/b9", "batches/b2"])
        assert statuses["batches/b9"].state is BatchState.FORGOTTEN
        assert statuses["batches/b1"].state is BatchState.RUNNING
        assert len(server.asked) == 2


def test_states_are_asked_for_again_after_an_error_of_the_server():
    replies = iter([error(503, "later"), Reply(body=operation(1))])
    with asking(lambda _: next(replies)) as (provider, server):
        assert provider.statuses(["batches/b1"])["batches/b1"].state is BatchState.RUNNING
        assert len(server.asked) == 2


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


def test_a_cancel_that_fails_while_the_batch_goes_on_is_an_error():
    running = Reply(body=operation(1))
    refusal = error(400, "Not now.")
    with (
        asking(lambda asked: running if asked.method == "GET" else refusal) as (provider, _),
        pytest.raises(ProviderError, match="Not now"),
    ):
        provider.cancel("batches/b1")


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


@pytest.mark.parametrize(
    "reply",
    [
        error(400, "API key not valid. Please pass a valid API key."),
        error(403, "Permission denied"),
        error(404, "models/gemini-gone was not found"),
    ],
)
def test_a_plain_call_that_the_account_is_to_blame_for(reply: Reply):
    with asking(lambda _: reply) as (provider, _), pytest.raises(Refused) as caught:
        provider.plain(Call("gemini", GROUP, b"{}"))
    assert caught.value.account


def test_a_plain_call_is_made_again_after_an_error_of_the_server():
    replies = iter([error(503, "overloaded"), Reply(body=GOOD)])
    with asking(lambda _: next(replies)) as (provider, server):
        assert provider.plain(Call("gemini", GROUP, b'{"a":1}'))[0] == 200
        assert [each.body for each in server.asked] == [b'{"a":1}'] * 2


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


def test_eight_threads_get_each_its_own_answer():
    with asking(lambda asked: Reply(body={"echo": asked.json})) as (provider, _):
        calls = [Call("gemini", GROUP, json.dumps({"n": n}).encode()) for n in range(80)]
        with ThreadPoolExecutor(8) as pool:
            answers = [json.loads(body)["echo"]["n"] for _, body in pool.map(provider.plain, calls)]
    assert answers == list(range(80))
