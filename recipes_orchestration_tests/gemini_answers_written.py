"""Gemini's client through its SDK, against answers that each test writes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from recipes_orchestration.providers import gemini_sdk
from recipes_orchestration.providers.gemini_provider import GeminiProvider
from recipes_orchestration.providers.provider import Group

from .answering_server import AnsweringServer, Asked, Reply, running_server

__all__ = [
    "GOOD",
    "GROUP",
    "MODEL",
    "SECRET",
    "SINCE",
    "accepting",
    "asking",
    "client",
    "error",
    "listing",
    "one_try",
    "operation",
]

MODEL = "gemini-3-flash"
GROUP = Group(":generateContent", MODEL)
SECRET = "AIzaSyTheSecretKeyOfThisTest"
SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
GOOD = {"candidates": [{"content": {"parts": [{"text": "yes"}]}, "finishReason": "STOP"}]}

KEPT: list[tuple[GeminiProvider, AnsweringServer]] = []


@pytest.fixture(scope="module")
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
