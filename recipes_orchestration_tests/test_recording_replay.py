"""Replay: the same code runs again and is answered from the batch, by the SDK's own types."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.recording import Clients, Recorder, Replayed

from .recorded_steps import (
    ALL,
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI,
    OVER_HTTPX,
    WORDS,
    Told,
    answers_to,
)
from .recording_fixtures import no_keys, recorder_for

__all__ = ["no_keys", "recorder_for"]

Make = Callable[..., Recorder]
each = pytest.mark.parametrize("told", ALL, ids=lambda told: told.provider)
each_async = pytest.mark.parametrize("told", OVER_HTTPX, ids=lambda told: told.provider)


@each
def test_the_batchs_answer_reaches_the_code_with_no_key(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    answers = answers_to(recorder, told.step(), told.answered())
    assert recorder.replay(told.step(), answers) == Replayed(WORDS)


@each_async
def test_asynchronous_code_is_answered_too(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    answers = answers_to(recorder, told.async_step(), told.answered())
    assert recorder.replay(told.async_step(), answers).value == WORDS


@each
def test_the_answer_is_of_the_sdks_own_type(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    module, _, name = told.type_name.rpartition(".")
    answers = answers_to(recorder, told.step(), told.answered())
    value = recorder.replay(lambda c: told.ask(c.client, WORDS), answers).value
    assert isinstance(value, getattr(importlib.import_module(module), name))


@each
def test_every_part_of_a_split_page_gets_its_own_answer(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    parts = [f"part {number}" for number in range(20)]
    answers = {
        recorder.capture(told.step(part)).id: told.answered(f"answer to {part}") for part in parts
    }

    def step(clients: Clients) -> list[str]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda part: told.text(told.ask(clients.client, part)), parts))

    assert recorder.replay(step, answers).value == [f"answer to {part}" for part in parts]


@each_async
def test_gathered_requests_are_answered_each(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    parts = [f"part {number}" for number in range(5)]
    answers = {recorder.capture(told.step(part)).id: told.answered(part) for part in parts}

    async def many(client: Any) -> list[str]:
        found = await asyncio.gather(*(told.ask(client, part) for part in parts))
        return [told.text(each) for each in found]

    replayed = recorder.replay(lambda clients: asyncio.run(many(clients.async_client)), answers)
    assert replayed.value == parts


class Letter(BaseModel):
    sender: str


def error_class(told: Told, status: int) -> type[Exception]:
    if told is GEMINI:
        from google.genai import errors

        return errors.ClientError if status < 500 else errors.ServerError
    if told is BEDROCK:
        from botocore.exceptions import ClientError

        return ClientError
    module = importlib.import_module(told.provider)
    named = {400: "BadRequestError", 429: "RateLimitError"}
    return getattr(module, named.get(status, "InternalServerError"))


@each
@pytest.mark.parametrize("status", [400, 429, 500])
def test_an_error_of_the_batch_is_the_sdks_own_and_not_tried_again(
    told: Told, status: int, recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    from recipes_orchestration.providers.recording_run import Run

    recorder = recorder_for(told)
    body = json.dumps({"error": {"message": "no", "type": "x"}, "message": "no"}).encode()
    answers = answers_to(recorder, told.step(), (status, body))
    attempts: list[Any] = []
    ask = Run.ask
    monkeypatch.setattr(Run, "ask", lambda run, asked: attempts.append(asked) or ask(run, asked))
    with pytest.raises(error_class(told, status)):
        recorder.replay(told.step(), answers)
    assert len(attempts) == 1


@each
def test_code_may_handle_the_sdks_error_itself(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    body = json.dumps({"error": {"message": "no"}, "message": "no"}).encode()
    answers = answers_to(recorder, told.step(), (400, body))

    def step(clients: Clients) -> str:
        try:
            return told.text(told.ask(clients.client, WORDS))
        except error_class(told, 400):
            return "unreadable"

    assert recorder.replay(step, answers).value == "unreadable"


def test_bedrocks_errors_have_the_codes_own_classes(recorder_for: Make):
    recorder = recorder_for(BEDROCK)
    answers = answers_to(recorder, BEDROCK.step(), (429, b'{"message": "slow down"}'))

    def step(clients: Clients) -> str:
        try:
            return BEDROCK.ask(clients.client, WORDS)
        except clients.client.exceptions.ThrottlingException as error:
            return error.response["Error"]["Message"]

    assert recorder.replay(step, answers).value == "slow down"


def test_bedrocks_invoke_model_gives_a_body_to_read(recorder_for: Make):
    recorder = recorder_for(BEDROCK)

    def step(clients: Clients) -> Any:
        answer = clients.client.invoke_model(modelId="m", body=json.dumps({"inputText": WORDS}))
        return json.loads(answer["body"].read())

    answers = answers_to(recorder, step, (200, json.dumps({"embedding": [1, 2]}).encode()))
    assert recorder.replay(step, answers).value == {"embedding": [1, 2]}


def test_geminis_one_vector_is_answered_as_the_sdk_expects_it(recorder_for: Make):
    recorder = recorder_for(GEMINI)

    def step(clients: Clients) -> Any:
        found = clients.client.models.embed_content(model="gemini-embedding-001", contents="Hi")
        return found.embeddings[0].values

    answers = answers_to(recorder, step, (200, b'{"embedding": {"values": [0.25, 0.5]}}'))
    assert recorder.replay(step, answers).value == [0.25, 0.5]


def test_raw_responses_of_the_sdk_work(recorder_for: Make):
    recorder = recorder_for(OPENAI)

    def step(clients: Clients) -> Any:
        raw = clients.client.chat.completions.with_raw_response
        return raw.create(model="m", messages=[]).parse().choices[0].message.content

    assert recorder.replay(step, answers_to(recorder, step, OPENAI.answered())).value == WORDS


def test_a_response_read_in_pieces_works(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)

    def step(clients: Clients) -> Any:
        pieces = clients.client.messages.with_streaming_response
        with pieces.create(model="m", max_tokens=5, messages=[]) as response:
            return response.parse().content[0].text

    assert recorder.replay(step, answers_to(recorder, step, ANTHROPIC.answered())).value == WORDS


def test_an_answer_parsed_by_the_sdk_into_the_codes_own_model_works(recorder_for: Make):
    recorder = recorder_for(OPENAI)

    def step(clients: Clients) -> Any:
        found = clients.client.chat.completions.parse(
            model="m", messages=[], response_format=Letter
        )
        return found.choices[0].message.parsed

    answers = answers_to(recorder, step, OPENAI.answered('{"sender": "Ada"}'))
    assert recorder.replay(step, answers).value == Letter(sender="Ada")


def test_the_cause_of_the_codes_error_is_kept(recorder_for: Make):
    def step(clients: Clients) -> Any:
        raise ValueError("no page") from KeyError("image")

    with pytest.raises(ValueError, match="no page") as raised:
        recorder_for(ANTHROPIC).replay(step, {})
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_client_with_other_options_stays_in_the_run(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)

    def step(clients: Clients) -> str:
        client = clients.client.with_options(timeout=5, max_retries=1)
        return ANTHROPIC.text(ANTHROPIC.ask(client, WORDS))

    answers = answers_to(recorder, step, ANTHROPIC.answered())
    assert recorder.replay(step, answers).value == WORDS


def test_what_the_code_registers_at_boto3_stays_with_its_page(recorder_for: Make):
    recorder = recorder_for(BEDROCK)
    seen: list[str] = []

    def step(clients: Clients) -> str:
        clients.client.meta.events.register(
            "after-call.bedrock-runtime", lambda **_: seen.append("called")
        )
        return BEDROCK.text(BEDROCK.ask(clients.client, WORDS))

    answers = answers_to(recorder, step, BEDROCK.answered())
    recorder.replay(step, answers)
    recorder.replay(BEDROCK.step(), answers)
    assert seen == ["called"]


def test_an_error_of_the_code_itself_is_raised_as_it_is(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)
    answers = answers_to(recorder, ANTHROPIC.step(), ANTHROPIC.answered("no number"))
    with pytest.raises(ValueError, match="invalid literal"):
        recorder.replay(lambda clients: int(ANTHROPIC.step()(clients)), answers)


def test_code_that_asks_nothing_at_landing_gives_its_value(recorder_for: Make):
    assert recorder_for(ANTHROPIC).replay(lambda clients: {"text": ""}, {}).value == {"text": ""}


def test_a_client_kept_from_an_earlier_page_is_refused(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)
    answers = answers_to(recorder, ANTHROPIC.step(), ANTHROPIC.answered())
    kept: list[Any] = []

    def step(clients: Clients) -> Any:
        kept.append(clients.client)
        return ANTHROPIC.ask(kept[0], WORDS)

    recorder.replay(step, answers)
    with pytest.raises(StepError, match="client of a page that is done"):
        recorder.replay(step, answers)
