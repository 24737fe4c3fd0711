"""The short way of Anthropic's and OpenAI's clients asks and answers as their HTTP way does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recipes_orchestration.providers import recording_shortcut
from recipes_orchestration.providers.recording import Clients, Recorder

from .recorded_steps import ANTHROPIC, OPENAI, Told
from .recording_fixtures import no_keys, recorder_for

__all__ = ["no_keys", "recorder_for"]

Make = Callable[..., Recorder]
each = pytest.mark.parametrize("told", [ANTHROPIC, OPENAI], ids=lambda told: told.provider)
WORDS = "äöü “quoted” \u2028 \U0001f600 \\ /"


def ask(client: Any, told: Told, **more: Any) -> Any:
    """A question with a generator in it and words that JSON may write in several ways."""
    content = [{"type": "text", "text": WORDS}]
    messages = ({"role": "user", "content": each} for each in (content, WORDS))
    if told is ANTHROPIC:
        asked = {"model": "claude-sonnet-4-6", "max_tokens": 300, "system": WORDS, **more}
        return client.messages.create(messages=messages, stop_sequences=["x"], **asked)
    asked = {"model": "gpt-5", "max_completion_tokens": 300, "seed": 7, **more}
    return client.chat.completions.create(messages=messages, stop=["\n"], **asked)


def by_http(client: Any) -> Any:
    """The same client without the short way."""
    return client.with_options(timeout=77.0)


@each
def test_the_short_way_records_what_the_http_client_would_send(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    short = recorder.capture(lambda clients: ask(clients.client, told))
    assert short == recorder.capture(lambda clients: ask(by_http(clients.client), told))


@each
def test_the_short_way_makes_no_http_client(told: Told, recorder_for: Make):
    kept: list[Any] = []

    def step(clients: Clients) -> Any:
        kept.append(clients.client)
        return ask(clients.client, told)

    recorder_for(told).capture(step)
    assert "_client" not in vars(kept[0])


@pytest.mark.parametrize(
    ("told", "more"),
    [
        (ANTHROPIC, {"extra_headers": {"x-mine": "1"}}),
        (OPENAI, {"extra_headers": {"x-mine": "1"}}),
        (OPENAI, {"extra_body": {"mine": 1}}),
    ],
    ids=["anthropic-header", "openai-header", "openai-body"],
)
def test_what_is_given_beside_the_question_takes_the_http_way(
    told: Told, more: dict[str, Any], recorder_for: Make
):
    kept: list[Any] = []

    def step(clients: Clients) -> Any:
        kept.append(clients.client)
        return ask(clients.client, told, **more)

    call = recorder_for(told).capture(step)
    assert "_client" in vars(kept[0])
    assert (b'"mine":1' in call.body) == ("extra_body" in more)


def test_betas_of_every_request_are_part_of_the_group(
    recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: one-2026-01-01")
    call = recorder_for(ANTHROPIC).capture(lambda clients: ask(clients.client, ANTHROPIC))
    assert call.group.betas == ("one-2026-01-01",)


@each
def test_an_sdk_with_another_inside_keeps_its_http_way(
    told: Told, recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    known = recorder_for(told).capture(lambda clients: ask(clients.client, told))
    monkeypatch.setattr(recording_shortcut, "takes", lambda function, *names: False)
    assert recorder_for(told).capture(lambda clients: ask(clients.client, told)) == known
