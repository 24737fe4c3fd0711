"""Live calls of a replay: sent to the provider, counted, capped and booked; over real HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.recording import Clients, LiveCall, Recorder, Replayed
from recipes_orchestration.rehearsal import Rehearsal

from .recorded_steps import (
    ALL,
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI,
    OVER_HTTPX,
    WORDS,
    TinyProvider,
    Told,
    answers_to,
    tiny_provider,
)
from .recording_fixtures import no_keys, recorder_for
from .rehearsal_fixtures import rehearsal, rehearsal_server

__all__ = ["no_keys", "recorder_for", "rehearsal", "rehearsal_server"]

Make = Callable[..., Recorder]
MakeLive = Callable[..., tuple[Recorder, TinyProvider]]
each = pytest.mark.parametrize("told", ALL, ids=lambda told: told.provider)
each_async = pytest.mark.parametrize("told", OVER_HTTPX, ids=lambda told: told.provider)


def at(told: Told, url: str) -> dict[str, str]:
    """The recorder's option that leads its live calls to `url`."""
    return {"runtime_url" if told is BEDROCK else "base_url": url}


@pytest.fixture
def live_for(recorder_for: Make, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeLive]:
    """Makes a recorder with a key, and the provider that its live calls reach."""
    with tiny_provider() as provider:

        def make(
            told: Told, *answers: tuple[int, bytes], **options: Any
        ) -> tuple[Recorder, TinyProvider]:
            for name, value in told.keys.items():
                monkeypatch.setenv(name, value)
            provider.answers.extend(answers or [told.answered()])
            return recorder_for(told, **at(told, provider.url), **options), provider

        yield make


def twice(told: Told) -> Callable[[Clients], list[str]]:
    """A step with a second question, which no batch holds."""

    def step(clients: Clients) -> list[str]:
        first = told.text(told.ask(clients.client, WORDS))
        return [first, told.text(told.ask(clients.client, f"check: {first}"))]

    return step


@each
def test_the_second_of_two_requests_goes_live_and_is_booked(told: Told, live_for: MakeLive):
    recorder, provider = live_for(told, told.answered("checked"))
    answers = answers_to(recorder, twice(told), told.answered("read"))
    replayed = recorder.replay(twice(told), answers)
    assert replayed.value == ["read", "checked"]
    assert len(provider.requests) == 1
    (live,) = replayed.live
    assert (live.status, live.body) == told.answered("checked")
    assert live.call == recorder.capture(told.step("check: read"))


@each_async
def test_an_asynchronous_request_goes_live_too(told: Told, live_for: MakeLive):
    recorder, _ = live_for(told, told.answered("live"))
    replayed = recorder.replay(told.async_step("other"), {})
    assert (replayed.value, len(replayed.live)) == ("live", 1)


@each
def test_the_provider_is_sent_what_would_have_been_the_batchs(told: Told, live_for: MakeLive):
    recorder, provider = live_for(told)
    recorder.replay(told.step(), {})
    assert provider.requests[0][2] == recorder.capture(told.step()).body


@each_async
def test_the_key_is_added_on_the_way_and_the_code_never_holds_it(told: Told, live_for: MakeLive):
    recorder, provider = live_for(told)
    (key,) = told.keys.values()
    seen: list[Any] = []

    def step(clients: Clients) -> str:
        seen.append(getattr(clients.client, "api_key", None))
        return told.step()(clients)

    recorder.replay(step, {})
    assert key in " ".join(provider.requests[0][1].values())
    assert key not in str(seen)


def test_bedrock_signs_with_the_real_credentials(live_for: MakeLive):
    recorder, provider = live_for(BEDROCK)
    recorder.replay(BEDROCK.step(), {})
    assert "AKIASECRET" in provider.requests[0][1]["authorization"]


def test_a_key_given_to_the_recorder_goes_before_the_environment(live_for: MakeLive):
    recorder, provider = live_for(ANTHROPIC, api_key="sk-of-the-place")
    recorder.replay(ANTHROPIC.step(), {})
    assert provider.requests[0][1]["authorization"] == "Bearer sk-of-the-place"


def test_anthropics_bearer_token_is_used_where_there_is_no_key(
    live_for: MakeLive, monkeypatch: pytest.MonkeyPatch
):
    recorder, provider = live_for(ANTHROPIC)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "bearer-secret")
    recorder.replay(ANTHROPIC.step(), {})
    assert provider.requests[0][1]["authorization"] == "Bearer bearer-secret"


def test_a_key_that_the_code_brings_itself_is_left_as_it_is(live_for: MakeLive):
    recorder, provider = live_for(OPENAI)
    recorder.replay(lambda c: OPENAI.ask(c.client.with_options(api_key="sk-own"), WORDS), {})
    assert provider.requests[0][1]["authorization"] == "Bearer sk-own"


@each
def test_a_live_call_without_a_key_says_which_variable_to_set(
    told: Told, recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    with tiny_provider(told.answered()) as provider:
        recorder = recorder_for(told, **at(told, provider.url))
        with pytest.raises(StepError, match=f"{next(iter(told.keys))}.*not in the batch"):
            recorder.replay(told.step(), {})
        assert provider.requests == []


def test_a_live_call_to_bedrock_without_a_region_says_so(
    recorder_for: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(StepError, match="AWS_DEFAULT_REGION is not set"):
        recorder_for(BEDROCK).replay(BEDROCK.step(), {})


@each
def test_live_calls_are_capped_over_the_recorders_life(told: Told, live_for: MakeLive):
    recorder, provider = live_for(told, live_calls=2)
    for _ in range(2):
        recorder.replay(told.step(), {})
    with pytest.raises(StepError, match=r"2 live calls .* used up.*`live_calls`"):
        recorder.replay(told.step(), {})
    assert len(provider.requests) == 2


def test_the_cap_holds_when_many_threads_ask_at_once(live_for: MakeLive):
    recorder, provider = live_for(ANTHROPIC, live_calls=5)

    def replay(number: int) -> bool:
        try:
            recorder.replay(ANTHROPIC.step(f"page {number}"), {})
        except StepError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        went = sum(pool.map(replay, range(20)))
    assert (went, len(provider.requests)) == (5, 5)


def test_code_that_swallows_the_cap_fails_all_the_same(live_for: MakeLive):
    recorder, _ = live_for(ANTHROPIC, live_calls=0)

    def step(clients: Clients) -> str:
        try:
            return ANTHROPIC.text(ANTHROPIC.ask(clients.client, WORDS))
        except BaseException:  # noqa: BLE001 - as in a user's code
            return "made up"

    with pytest.raises(StepError, match="used up"):
        recorder.replay(step, {})


def test_the_cap_ends_a_pool_that_takes_plain_errors_only(live_for: MakeLive):
    recorder, provider = live_for(ANTHROPIC, live_calls=1)

    def step(clients: Clients) -> Any:
        with ThreadPool(2) as pool:
            return pool.map(lambda n: ANTHROPIC.ask(clients.client, f"part {n}"), range(4))

    with pytest.raises(StepError, match="used up"):
        recorder.replay(step, {})
    assert len(provider.requests) == 1


def test_the_sdks_own_retries_of_a_live_call_are_counted_each(live_for: MakeLive):
    recorder, provider = live_for(ANTHROPIC, (529, b"{}"), ANTHROPIC.answered())
    replayed = recorder.replay(ANTHROPIC.step(), {})
    assert [live.status for live in replayed.live] == [529, 200]
    assert len(provider.requests) == 2


def test_a_live_error_is_the_sdks_own(live_for: MakeLive):
    import anthropic

    recorder, _ = live_for(ANTHROPIC, (400, b'{"error": {"message": "no"}}'))
    with pytest.raises(anthropic.BadRequestError, match="no"):
        recorder.replay(ANTHROPIC.step(), {})


def test_bedrocks_live_error_is_booked_and_boto3s_own(live_for: MakeLive):
    from botocore.exceptions import ClientError

    recorder, _ = live_for(BEDROCK, (400, b'{"message": "no", "__type": "ValidationException"}'))
    heard: list[LiveCall] = []
    with pytest.raises(ClientError, match="no"):
        recorder.replay(BEDROCK.step(), {}, heard.append)
    assert [call.status for call in heard] == [400]


def test_bedrocks_live_body_can_still_be_read(live_for: MakeLive):
    recorder, _ = live_for(BEDROCK, (200, b'{"embedding": [1]}'))
    replayed = recorder.replay(
        lambda c: c.client.invoke_model(modelId="m", body=b'{"a": 1}')["body"].read(), {}
    )
    assert replayed.value == replayed.live[0].body == b'{"embedding": [1]}'


def test_geminis_live_vector_is_booked_as_its_call_would_be_answered(live_for: MakeLive):
    recorder, provider = live_for(GEMINI, (200, b'{"embeddings": [{"values": [0.5]}]}'))

    def step(clients: Clients) -> Any:
        return clients.client.models.embed_content(model="m", contents="Hi").embeddings[0].values

    replayed = recorder.replay(step, {})
    assert (replayed.value, provider.requests[0][0]) == ([0.5], "/v1/models/m:batchEmbedContents")
    assert json.loads(replayed.live[0].body) == {"embedding": {"values": [0.5]}}


def test_live_calls_are_heard_also_when_the_code_fails_in_the_end(live_for: MakeLive):
    recorder, _ = live_for(ANTHROPIC)
    heard: list[LiveCall] = []
    with pytest.raises(ZeroDivisionError):
        recorder.replay(lambda c: 1 / len(ANTHROPIC.step()(c)[:0]), {}, heard.append)
    assert len(heard) == 1


def test_a_page_waits_for_what_its_threads_have_sent(live_for: MakeLive):
    recorder, provider = live_for(ANTHROPIC)
    threads: list[threading.Thread] = []

    def step(clients: Clients) -> str:
        threads.append(threading.Thread(target=ANTHROPIC.ask, args=(clients.client, "aside")))
        threads[0].start()
        while not provider.requests:
            time.sleep(0.001)
        return "done"

    assert len(recorder.replay(step, {}).live) == 1
    threads[0].join(10)


def test_a_thread_that_outlives_its_page_sends_nothing(live_for: MakeLive):
    recorder, provider = live_for(ANTHROPIC)
    kept: list[Any] = []

    def step(clients: Clients) -> str:
        kept.append(clients.client)
        return "done"

    recorder.replay(step, {})
    outcome: list[BaseException] = []

    def later() -> None:
        try:
            ANTHROPIC.ask(kept[0], "late")
        except BaseException as error:  # noqa: BLE001 - looked at below
            outcome.append(error)

    thread = threading.Thread(target=later)
    thread.start()
    thread.join(10)
    assert "nothing was sent" in str(outcome[0])
    assert provider.requests == []


def test_many_pages_with_an_event_loop_each_go_live_at_once(live_for: MakeLive):
    recorder, provider = live_for(OPENAI)

    def replay(number: int) -> str:
        return recorder.replay(OPENAI.async_step(f"page {number}"), {}).value

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(replay, range(16))) == {WORDS}
    assert len(provider.requests) == 16


def test_a_request_that_no_batch_carries_goes_live_at_landing(live_for: MakeLive):
    recorder, _ = live_for(ANTHROPIC, (200, b'{"input_tokens": 7}'))
    replayed = recorder.replay(
        lambda c: c.client.messages.count_tokens(model="m", messages=[]).input_tokens, {}
    )
    assert replayed.value == 7
    assert replayed.live[0].call.group.model == ""


@each
def test_logs_at_debug_hold_neither_bodies_nor_keys(
    told: Told, live_for: MakeLive, caplog: pytest.LogCaptureFixture
):
    recorder, _ = live_for(told)
    caplog.set_level(logging.DEBUG)
    recorder.replay(told.step("a question to keep private"), {})
    if told is not BEDROCK:
        recorder.replay(told.async_step("a question to keep private"), {})
    for secret in ("a question to keep private", WORDS[:6], *told.keys.values()):
        assert secret not in caplog.text or secret == "eu-west-1"


LOGGED = """
from contextlib import closing
from recipes_orchestration_tests.recorded_steps import ANTHROPIC, OPENAI
from recipes_orchestration.providers.recording import Recorder
for told in (ANTHROPIC, OPENAI):
    with closing(Recorder(told.provider)) as recorder:
        recorder.capture(told.step("a question to keep private"))
"""


def test_the_sdks_own_switch_for_debug_logs_shows_no_bodies():
    environment = {**os.environ, "ANTHROPIC_LOG": "debug", "OPENAI_LOG": "debug"}
    ran = subprocess.run(
        [sys.executable, "-c", LOGGED], capture_output=True, text=True, env=environment, check=True
    )
    assert "private" not in ran.stdout + ran.stderr


@each
def test_a_plain_call_on_the_rehearsal_equals_its_replay(told: Told, rehearsal: Rehearsal):
    with closing(Recorder(told.provider)) as recorder:
        live = recorder.replay(told.step(), {})
        (call,) = live.live
        again = recorder.replay(told.step(), {call.call.id: (call.status, call.body)})
    assert again == Replayed(live.value)


@each_async
def test_an_asynchronous_call_on_the_rehearsal_gives_the_same(told: Told, rehearsal: Rehearsal):
    with closing(Recorder(told.provider)) as recorder:
        live = recorder.replay(told.async_step(), {})
        assert live.value == recorder.replay(told.step(), {}).value


def test_a_cancelled_coroutine_leaves_the_page_free_to_end(live_for: MakeLive):
    recorder, _ = live_for(ANTHROPIC)

    async def give_up(client: Any) -> str:
        task = asyncio.create_task(ANTHROPIC.ask(client, WORDS))
        await asyncio.sleep(0)
        task.cancel()
        return "gave up"

    assert recorder.replay(lambda c: asyncio.run(give_up(c.async_client)), {}).value == "gave up"
