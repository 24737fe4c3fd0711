"""Creates and keys of Gemini over HTTP, against answers that each test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.gemini_provider import GeminiProvider
from recipes_orchestration.providers.provider import Group

from .answering_server import LOST, Asked, Reply
from .gemini_answers_written import (
    GROUP,
    MODEL,
    SECRET,
    accepting,
    asking,
    client,
    error,
)

__all__ = ["client"]

pytestmark = pytest.mark.usefixtures("client")


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
