"""Capture: a page's code runs to its first request, which is the batch's; nothing is ever sent."""

from __future__ import annotations

import asyncio
import base64
import json
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from recipes_orchestration.errors import ConfigError, StepError
from recipes_orchestration.providers.recording import Clients, Recorder

from .recorded_steps import (
    ALL,
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI,
    OVER_HTTPX,
    PICTURE,
    WORDS,
    Told,
    picture_for,
)
from .recording_fixtures import no_keys, recorder_for

__all__ = ["no_keys", "recorder_for"]

Make = Callable[..., Recorder]
each = pytest.mark.parametrize("told", ALL, ids=lambda told: told.provider)
each_async = pytest.mark.parametrize("told", OVER_HTTPX, ids=lambda told: told.provider)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tries to connect fails the test that it runs in."""

    def refuse(self: socket.socket, address: Any) -> None:
        raise AssertionError(f"connects to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)


@each
def test_the_first_request_is_recorded_with_no_key_and_no_network(told: Told, recorder_for: Make):
    call = recorder_for(told).capture(told.step())
    assert call.provider == told.provider
    assert WORDS in json.dumps(json.loads(call.body), ensure_ascii=False)


@each_async
def test_an_asynchronous_client_records_the_same_call(told: Told, recorder_for: Make):
    recorder = recorder_for(told)
    assert recorder.capture(told.async_step()) == recorder.capture(told.step())


@each
def test_the_same_page_gives_the_same_id_whenever_it_is_captured(told: Told, recorder_for: Make):
    ids = {recorder_for(told).capture(told.step()).id for _ in range(3)}
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("told", "route", "model"),
    [
        (ANTHROPIC, "/v1/messages", "claude-sonnet-4-6"),
        (OPENAI, "/v1/chat/completions", "gpt-5"),
        (GEMINI, ":generateContent", "gemini-2.5-flash"),
        (BEDROCK, "converse", "amazon.nova-lite-v1:0"),
    ],
    ids=lambda value: value.provider if isinstance(value, Told) else "",
)
def test_the_group_names_route_and_model(told: Told, route: str, model: str, recorder_for: Make):
    group = recorder_for(told).capture(told.step()).group
    assert (group.route, group.model, group.betas) == (route, model, ())


def test_beta_headers_are_part_of_the_group_in_order(recorder_for: Make):
    def step(clients: Clients) -> Any:
        return clients.client.beta.messages.create(
            model="m", max_tokens=5, messages=[], betas=["zeta-2", "alpha-1"]
        )

    group = recorder_for(ANTHROPIC).capture(step).group
    assert (group.route, group.betas) == ("/v1/messages", ("alpha-1", "zeta-2"))


def test_responses_and_embeddings_of_openai_have_routes_of_their_own(recorder_for: Make):
    recorder = recorder_for(OPENAI)
    answer = recorder.capture(lambda c: c.client.responses.create(model="gpt-5", input="Hi"))
    vector = recorder.capture(lambda c: c.client.embeddings.create(model="e", input="Hi"))
    assert (answer.group.route, vector.group.route) == ("/v1/responses", "/v1/embeddings")


def test_a_gateway_before_the_path_does_not_change_the_route(recorder_for: Make):
    recorder = recorder_for(OPENAI, base_url="https://gateway.example/openai")
    assert recorder.capture(OPENAI.step()).group.route == "/v1/chat/completions"


def test_the_address_is_not_part_of_the_id(recorder_for: Make):
    elsewhere = recorder_for(ANTHROPIC, base_url="https://gateway.example/anthropic")
    assert elsewhere.capture(ANTHROPIC.step()) == recorder_for(ANTHROPIC).capture(ANTHROPIC.step())


def test_geminis_one_vector_is_recorded_as_one_call(recorder_for: Make):
    call = recorder_for(GEMINI).capture(
        lambda c: c.client.models.embed_content(model="gemini-embedding-001", contents="Hi")
    )
    assert call.group.route == ":embedContent"
    assert json.loads(call.body)["content"]["parts"] == [{"text": "Hi"}]


def test_bedrocks_invoke_model_is_recorded_as_the_models_own_request(recorder_for: Make):
    body = json.dumps({"inputText": WORDS})
    call = recorder_for(BEDROCK).capture(
        lambda c: c.client.invoke_model(modelId="amazon.titan", body=body)
    )
    assert (call.group.route, call.group.model) == ("invoke", "amazon.titan")
    assert call.body == body.encode()


@each
def test_a_picture_is_in_the_body_as_base64(told: Told, recorder_for: Make):
    call = recorder_for(told).capture(lambda clients: picture_for(told, clients.client))
    # google-genai writes the URL-safe alphabet, which JSON of protocol buffers may have.
    body = call.body.replace(b"-", b"+").replace(b"_", b"/")
    assert base64.b64encode(PICTURE) in body


@each
def test_except_exception_in_the_code_does_not_catch_the_stop(told: Told, recorder_for: Make):
    reached: list[str] = []

    def step(clients: Clients) -> Any:
        try:
            return told.ask(clients.client, "first")
        except Exception:  # noqa: BLE001 - as in a user's code
            reached.append("caught")

    assert b"first" in recorder_for(told).capture(step).body
    assert reached == []


@each
def test_code_that_catches_everything_and_goes_on_changes_nothing(told: Told, recorder_for: Make):
    def step(clients: Clients) -> Any:
        for prompt in ("first", "second", "third"):
            try:
                told.ask(clients.client, prompt)
            except BaseException:  # noqa: BLE001 - as in a user's code
                continue
        raise ValueError("in the end")

    assert b"first" in recorder_for(told).capture(step).body


@each
def test_a_thread_pool_of_the_code_is_in_the_same_run(told: Told, recorder_for: Make):
    def step(clients: Clients) -> Any:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda n: told.ask(clients.client, f"part {n}"), range(8)))

    assert b"part " in recorder_for(told).capture(step).body


@each
def test_a_pool_that_takes_plain_errors_only_does_not_hang(told: Told, recorder_for: Make):
    def step(clients: Clients) -> Any:
        with ThreadPool(2) as pool:
            return pool.map(lambda n: told.ask(clients.client, f"part {n}"), range(4))

    assert b"part " in recorder_for(told).capture(step).body


@each
def test_a_thread_of_its_own_hands_an_error_on(told: Told, recorder_for: Make):
    def step(clients: Clients) -> Any:
        results: queue.Queue[Any] = queue.Queue()

        def work() -> None:
            try:
                results.put(told.ask(clients.client, "part"))
            except Exception as error:  # noqa: BLE001 - as in a user's code
                results.put(error)

        threading.Thread(target=work).start()
        return results.get(timeout=30)

    assert b"part" in recorder_for(told).capture(step).body


@each_async
def test_requests_gathered_at_once_record_one(told: Told, recorder_for: Make):
    async def many(client: Any) -> Any:
        return await asyncio.gather(*(told.ask(client, f"part {n}") for n in range(8)))

    call = recorder_for(told).capture(lambda clients: asyncio.run(many(clients.async_client)))
    assert b"part " in call.body


@each_async
def test_a_task_group_of_the_code_records_too(told: Told, recorder_for: Make):
    async def many(client: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(told.ask(client, f"part {number}"))

    call = recorder_for(told).capture(lambda clients: asyncio.run(many(clients.async_client)))
    assert b"part " in call.body


def test_pages_captured_in_threads_at_once_do_not_mix(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)

    def capture(number: int) -> bool:
        body = recorder.capture(ANTHROPIC.step(f"page {number:03d}")).body
        return f"page {number:03d}".encode() in body

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(capture, range(100)))


@each
def test_a_thread_that_outlives_its_page_asks_nothing(told: Told, recorder_for: Make):
    go_on = threading.Event()
    late: list[BaseException | Any] = []

    def later(client: Any) -> None:
        go_on.wait(10)
        try:
            late.append(told.ask(client, "late"))
        except BaseException as error:  # noqa: BLE001 - looked at below
            late.append(error)

    threads: list[threading.Thread] = []

    def step(clients: Clients) -> Any:
        threads.append(threading.Thread(target=later, args=(clients.client,)))
        threads[0].start()
        return told.ask(clients.client, "in time")

    assert b"in time" in recorder_for(told).capture(step).body
    go_on.set()
    threads[0].join(10)
    assert "nothing was sent" in str(late[0])


def test_a_client_kept_from_an_earlier_page_is_refused_in_words(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)
    kept: list[Any] = []

    def step(clients: Clients) -> Any:
        kept.append(clients.client)
        return ANTHROPIC.ask(kept[0], "Hi")

    recorder.capture(step)
    with pytest.raises(StepError, match="client of a page that is done"):
        recorder.capture(step)


def test_code_that_asks_nothing_is_an_error(recorder_for: Make):
    with pytest.raises(StepError, match="ended without asking a model of `anthropic`"):
        recorder_for(ANTHROPIC).capture(lambda clients: {"text": ""})


def test_an_async_function_is_no_step(recorder_for: Make):
    async def step(clients: Clients) -> Any:
        return await ANTHROPIC.ask(clients.async_client, "Hi")

    with pytest.raises(StepError, match="is an `async def`"):
        recorder_for(ANTHROPIC).capture(step)


def test_an_error_of_the_code_itself_is_raised_as_it_is(recorder_for: Make):
    with pytest.raises(ZeroDivisionError):
        recorder_for(ANTHROPIC).capture(lambda clients: 1 / 0)


def test_a_long_answer_needs_no_streaming(recorder_for: Make):
    # The SDK refuses this by itself at its own time limit of ten minutes.
    call = recorder_for(ANTHROPIC).capture(
        lambda c: c.client.messages.create(model="m", max_tokens=64_000, messages=[])
    )
    assert json.loads(call.body)["max_tokens"] == 64_000


def test_a_capture_stops_at_once_whatever_the_retries(recorder_for: Make):
    recorder = recorder_for(ANTHROPIC)
    recorder.capture(ANTHROPIC.step())
    started = time.monotonic()
    recorder.capture(
        lambda c: ANTHROPIC.ask(c.client.with_options(max_retries=5, timeout=30), "Hi")
    )
    assert time.monotonic() - started < 0.4


WITHOUT_SDKS = """
import sys
for name in ("anthropic", "openai", "google", "boto3"):
    sys.modules[name] = None
from recipes_orchestration.errors import MissingExtra
from recipes_orchestration.providers.recording import Recorder
for provider in ("anthropic", "openai", "gemini", "bedrock"):
    try:
        Recorder(provider)
    except MissingExtra as error:
        print(error)
"""


def test_a_missing_sdk_is_named_by_its_extra():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_SDKS], capture_output=True, text=True, check=True
    )
    named = re.findall(r"pip install 'recipes-orchestration\[(\w+)\]'", ran.stdout)
    assert named == ["anthropic", "openai", "gemini", "bedrock"]


def test_an_unknown_provider_is_refused():
    with pytest.raises(ConfigError, match="`mistral`"):
        Recorder("mistral")
