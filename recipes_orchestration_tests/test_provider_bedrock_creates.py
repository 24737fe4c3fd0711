"""Creates and keys of Bedrock over HTTP, against answers that each test writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.bedrock_batches import job_name
from recipes_orchestration.providers.provider import Call, Group

from .answering_server import LOST, Reply
from .bedrock_answers_written import (
    GROUP,
    MADE,
    MODEL,
    ROLE,
    arn,
    asking,
    clients,
    credentials,
    error,
    store,
)
from .bucket_server import BUCKET

__all__ = ["clients", "credentials", "store"]

pytestmark = pytest.mark.usefixtures("clients", "credentials")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b'{"recordId":"a","modelInput":{}}\n')
    return path


def test_a_batch_is_an_object_and_a_job(file: Path, store: tuple[str, Any]):
    with asking(lambda _: MADE, store[0]) as (provider, server):
        assert provider.submit("our-name-1", GROUP, file, ["a"]) == arn(1)
    body = server.asked[0].json
    token = body.pop("clientRequestToken")
    assert body == {
        "jobName": "our-name-1",
        "roleArn": ROLE,
        "modelId": MODEL,
        "modelInvocationType": "Converse",
        "timeoutDurationInHours": 24,
        "inputDataConfig": {
            "s3InputDataConfig": {
                "s3InputFormat": "JSONL",
                "s3Uri": f"s3://{BUCKET}/recipes/our-name-1/input.jsonl",
            }
        },
        "outputDataConfig": {
            "s3OutputDataConfig": {"s3Uri": f"s3://{BUCKET}/recipes/our-name-1/output/"}
        },
    }
    assert token.isalnum()
    stored = store[1].get_object(Bucket=BUCKET, Key="recipes/our-name-1/input.jsonl")["Body"]
    with stored:
        assert stored.read() == file.read_bytes()


def test_the_same_name_has_the_same_token(file: Path, store: tuple[str, Any]):
    with asking(lambda _: MADE, store[0]) as (provider, server):
        for name in ("one", "one", "two"):
            provider.submit(name, GROUP, file, ["a"])
    tokens = [each.json["clientRequestToken"] for each in server.asked]
    assert tokens[0] == tokens[1] != tokens[2]


def test_vectors_are_a_job_of_invoke_model(file: Path, store: tuple[str, Any]):
    with asking(lambda _: MADE, store[0], timeout_hours=500, prefix="/a/b/") as (provider, server):
        provider.submit("one", Group("invoke", "amazon.titan-embed-text-v2:0"), file, ["a"])
    body = server.asked[0].json
    assert body["modelInvocationType"] == "InvokeModel"
    assert body["timeoutDurationInHours"] == 168
    assert body["inputDataConfig"]["s3InputDataConfig"]["s3Uri"].startswith(f"s3://{BUCKET}/a/b/")


@pytest.mark.parametrize(
    "name", ["vol 1/p.0001ä.jpg", "x" * 300, "-a", "a.", "日本", "a", "", "letters-1891/0001"]
)
def test_any_name_becomes_the_name_of_a_job(name: str):

    # botocore 1.43's pattern of ModelInvocationJobName.
    pattern = r"[a-zA-Z0-9]{1,63}(-*[a-zA-Z0-9\+\-\.]){0,63}"
    assert re.fullmatch(pattern, job_name(name))
    assert len(job_name(name)) <= 63
    assert job_name(name) != job_name(name + "x")


@pytest.mark.parametrize(
    "create",
    [
        error(500, "InternalServerException"),
        error(503, "ServiceUnavailableException"),
        error(409, "ConflictException"),
        LOST,
        Reply(body=b"<html>"),
        Reply(body={}),
    ],
)
def test_a_create_without_a_clear_answer_is_made_once_and_unknown(
    file: Path, store: tuple[str, Any], create: Reply
):
    with asking(lambda _: create, store[0]) as (provider, server):
        with pytest.raises(ProviderError) as caught:
            provider.submit("one", GROUP, file, ["a"])
        assert not isinstance(caught.value, Refused)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("create", "account", "wait"),
    [
        (error(400, "ValidationException", "The S3 URI is malformed."), False, None),
        (
            error(400, "ValidationException", "The provided model identifier is invalid."),
            True,
            None,
        ),
        (error(403, "AccessDeniedException"), True, None),
        (error(403, "UnrecognizedClientException"), True, None),
        (error(404, "ResourceNotFoundException"), True, None),
        (error(400, "ServiceQuotaExceededException", "too many jobs"), True, 600),
        (error(429, "ThrottlingException", "Too many requests"), True, 60),
    ],
)
def test_a_create_that_is_refused(
    file: Path, store: tuple[str, Any], create: Reply, account: bool, wait: float | None
):
    with asking(lambda _: create, store[0]) as (provider, server):
        with pytest.raises(Refused) as caught:
            provider.submit("one", GROUP, file, ["a"])
        assert len(server.asked) == 1
    assert (caught.value.account, caught.value.retry_after) == (account, wait)


def test_a_bucket_that_is_not_there_is_refused_before_a_job_is_made(
    file: Path, store: tuple[str, Any]
):
    with asking(lambda _: MADE, store[0], bucket="no-such-bucket") as (provider, server):
        with pytest.raises(Refused) as caught:
            provider.submit("one", GROUP, file, ["a"])
        assert server.asked == []
    assert caught.value.account


@pytest.mark.parametrize("missing", ["bucket", "role_arn"])
def test_without_a_bucket_or_a_role_nothing_is_sent(file: Path, missing: str):
    with asking(lambda _: MADE, **{missing: None}) as (provider, server):
        with pytest.raises(Refused, match="`bucket` and `role_arn`"):
            provider.submit("one", GROUP, file, ["a"])
        assert server.asked == []


def test_without_credentials_nothing_is_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with asking(lambda _: Reply(), timeout=9) as (provider, server):
        with pytest.raises(Refused, match="credentials") as caught:
            provider.plain(Call("bedrock", GROUP, b"{}"))
        assert server.asked == []
    assert caught.value.account


def test_a_key_is_in_no_message():
    words = "The canonical string x-amz-security-token:SECRETTOKEN of AKIATHEKEYOFTHISTEST is wrong"
    refusal = error(403, "InvalidSignatureException", words)
    with asking(lambda _: refusal) as (provider, _), pytest.raises(Refused) as caught:
        provider.plain(Call("bedrock", GROUP, b"{}"))
    assert "SECRETTOKEN" not in str(caught.value)
    assert "AKIA" not in str(caught.value)
    assert caught.value.__suppress_context__
