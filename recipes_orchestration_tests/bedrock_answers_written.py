"""Bedrock's client through boto3, against answers that each test writes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from recipes_orchestration.providers.bedrock_provider import BedrockProvider
from recipes_orchestration.providers.provider import Group

from .answering_server import AnsweringServer, Asked, Reply, running_server
from .bucket_server import BUCKET, running_bucket

__all__ = [
    "CLIENTS",
    "CONVERSED",
    "GROUP",
    "MADE",
    "MODEL",
    "SINCE",
    "arn",
    "asking",
    "clients",
    "credentials",
    "error",
    "job",
    "listing",
    "query_of",
    "store",
]

MODEL = "us.anthropic.claude-sonnet-4-6"
GROUP = Group("converse", MODEL)
ROLE = "arn:aws:iam::111122223333:role/batch"
SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "yes"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATHEKEYOFTHISTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "TheSecretOfThisTest")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def store() -> Generator[tuple[str, Any]]:
    """The address of a server of S3, and a client of it."""
    with running_bucket() as (url, client):
        yield url, client


class Clients:
    """Providers of one server, kept for the tests that ask for the same: boto3 starts slowly."""

    def __init__(self, server: AnsweringServer) -> None:
        self.server = server
        self.kept: dict[str, BedrockProvider] = {}

    def provider(self, settings: dict[str, Any]) -> BedrockProvider:
        key = repr(sorted(settings.items()))
        if key not in self.kept:
            given: dict[str, Any] = {
                "base_url": self.server.url,
                "runtime_url": self.server.url,
                "bucket": BUCKET,
                "role_arn": ROLE,
                "region": "us-east-1",
                "timeout": 10.0,
            }
            self.kept[key] = BedrockProvider(**{**given, **settings})
        return self.kept[key]


CLIENTS: list[Clients] = []


@pytest.fixture(scope="module")
def clients() -> Generator[None]:
    """The server and the clients of `asking`."""
    with running_server(lambda _: Reply()) as server:
        CLIENTS.append(Clients(server))
        yield
        for provider in CLIENTS.pop().kept.values():
            provider.close()


@contextmanager
def asking(
    answer: Callable[[Asked], Reply], s3_url: str | None = None, **settings: Any
) -> Generator[tuple[BedrockProvider, AnsweringServer]]:
    server = CLIENTS[0].server
    server.answer = answer
    server.asked.clear()
    yield CLIENTS[0].provider({"s3_url": s3_url, **settings}), server


def error(status: int, code: str, message: str = "no") -> Reply:
    return Reply(status, {"message": message}, {"x-amzn-ErrorType": code})


def arn(number: int) -> str:
    return f"arn:aws:bedrock:us-east-1:111122223333:model-invocation-job/{number:012}"


def job(number: int, name: str = "job", status: str = "InProgress", **more: Any) -> dict[str, Any]:
    place = f"s3://{BUCKET}/recipes/{name}"
    return {
        "jobArn": arn(number),
        "jobName": name,
        "modelId": MODEL,
        "roleArn": ROLE,
        "status": status,
        "submitTime": f"2026-11-29T12:{number % 60:02}:00Z",
        "inputDataConfig": {"s3InputDataConfig": {"s3Uri": f"{place}/input.jsonl"}},
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"{place}/output/"}},
        **more,
    }


def listing(*jobs: Any) -> Callable[[Asked], Reply]:
    return lambda _: Reply(body={"invocationJobSummaries": list(jobs)})


def query_of(asked: Asked) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(asked.path).query).items()}


MADE = Reply(body={"jobArn": arn(1)})
