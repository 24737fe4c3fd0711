"""The short way of Gemini's clients asks and answers as their HTTP way does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.genai import errors, types

from recipes_orchestration.providers import recording_gemini
from recipes_orchestration.providers.recording import Clients, Recorder

from .recorded_steps import GEMINI
from .recording_fixtures import no_keys, recorder_for

__all__ = ["no_keys", "recorder_for"]

Make = Callable[..., Recorder]
WORDS = "äöü “quoted” \u2028 \U0001f600 \\ /"
MODEL = "gemini-2.5-flash"
ANSWER = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": WORDS}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5},
    "modelVersion": MODEL,
}


def ask(clients: Clients, **more: Any) -> Any:
    config: dict[str, Any] = {"system_instruction": WORDS, "temperature": 0.5, **more}
    picture = types.Part.from_bytes(data=bytes(range(256)), mime_type="image/jpeg")
    return clients.client.models.generate_content(
        model=MODEL, contents=[picture, WORDS], config=config
    )


def by_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_gemini, "takes", lambda function, *names: False)


def parts_of(client: Any) -> dict[str, Any]:
    return vars(vars(client)["_api_client"])


def test_the_short_way_records_what_the_http_client_would_send(
    recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    short = recorder_for(GEMINI).capture(ask)
    by_http(monkeypatch)
    assert recorder_for(GEMINI).capture(ask) == short


@pytest.mark.parametrize("status", [200, 400, 429, 500])
def test_the_short_way_answers_as_the_http_client_does(
    status: int, recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    error = {"error": {"code": status, "message": "no", "status": "INVALID"}}
    body = json.dumps(ANSWER if status == 200 else error).encode()

    def told() -> Any:
        recorder = recorder_for(GEMINI)
        call = recorder.capture(ask)
        try:
            answer = recorder.replay(ask, {call.id: (status, body)}).value
        except errors.APIError as raised:
            return type(raised), raised.code, raised.status, raised.message, raised.details
        return answer.text, answer.model_dump()

    short = told()
    by_http(monkeypatch)
    assert told() == short


def test_the_short_way_makes_no_http_client(recorder_for: Make):
    kept: list[Any] = []

    def step(clients: Clients) -> Any:
        kept.append(clients.client)
        return ask(clients)

    recorder_for(GEMINI).capture(step)
    assert not {"_httpx_client", "_async_httpx_client"} & parts_of(kept[0]).keys()


def test_what_is_given_beside_the_question_takes_the_http_way(recorder_for: Make):
    kept: list[Any] = []

    def step(clients: Clients) -> Any:
        kept.append(clients.client)
        return ask(clients, http_options={"extra_body": {"mine": 1}})

    call = recorder_for(GEMINI).capture(step)
    assert "_httpx_client" in parts_of(kept[0])
    assert json.loads(call.body)["mine"] == 1
