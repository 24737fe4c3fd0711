"""What the clients of Anthropic and OpenAI make of answers no provider should give, and of keys."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from recipes_orchestration.errors import (
    ConfigError,
    InDoubt,
    MissingExtra,
    ProviderError,
    Refused,
)
from recipes_orchestration.providers.provider import BatchState, Call, Provider
from recipes_orchestration.providers.registry import open_provider
from recipes_orchestration.steps.ask import Ask, Text

from .answering_server import AnsweringServer, Reply, running_server
from .provider_batches import KEY, bench

BOTH = ("anthropic", "openai")
VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
PAGE = Reply(404, b"<html>nginx</html>")


@contextmanager
def scripted(*replies: Reply) -> Generator[AnsweringServer]:
    """Answers in turn, then the last answer for ever."""
    left = list(replies)
    with running_server(lambda asked: left.pop(0) if len(left) > 1 else left[0]) as server:
        yield server


@contextmanager
def against(
    name: str, *replies: Reply, key: str = KEY
) -> Generator[tuple[AnsweringServer, Provider]]:
    with scripted(*replies) as server:
        provider = open_provider(name, base_url=server.url, api_key=key)
        try:
            yield server, provider
        finally:
            provider.close()


def a_call(provider: Provider) -> Call:
    return provider.call(Ask((Text("Read."),), 10), "gpt-5")


def submit(provider: Provider, folder: Path) -> str:
    call = a_call(provider)
    file = folder / "requests.jsonl"
    file.write_bytes(provider.line(call.id, call))
    return provider.submit("task", call.group, file, [call.id])


def taken(name: str) -> list[Reply]:
    """The answers before a batch is created: OpenAI's to the upload."""
    return [Reply(body=b'{"id":"file-1"}')] if name == "openai" else []


@pytest.fixture(params=BOTH)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    return request.param


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"<html>", b'{"id":7}', b'{"id":""}'])
def test_a_create_that_was_answered_with_nonsense_is_unknown(
    name: str, body: bytes, tmp_path: Path
):
    with (
        against(name, *taken(name), Reply(body=body)) as (_, provider),
        pytest.raises(ProviderError) as error,
    ):
        submit(provider, tmp_path)
    assert not isinstance(error.value, Refused)


def test_a_create_is_not_sent_on_to_another_address(name: str, tmp_path: Path):
    with scripted(Reply(body=b'{"id":"stolen"}')) as elsewhere:
        moved = Reply(307, headers={"Location": elsewhere.url})
        with against(name, *taken(name), moved) as (_, provider):
            with pytest.raises(ProviderError) as error:
                submit(provider, tmp_path)
            assert not isinstance(error.value, Refused)
        assert elsewhere.asked == []


def test_a_body_says_its_length_and_is_the_list_of_lines(tmp_path: Path):
    with against("anthropic", Reply(body=b'{"id":"msgbatch_1"}')) as (server, provider):
        assert submit(provider, tmp_path) == "msgbatch_1"
        (asked,) = server.asked
        call = a_call(provider)
        assert asked.path == "/v1/messages/batches"
        assert "transfer-encoding" not in asked.headers
        assert asked.json == {"requests": [{"custom_id": call.id, "params": json.loads(call.body)}]}


def test_an_address_that_leads_elsewhere_forgets_no_batch(name: str):
    with against(name, PAGE) as (_, provider), pytest.raises(ProviderError):
        provider.statuses(["batch_1"])


def test_an_address_that_leads_elsewhere_is_the_accounts(name: str):
    with against(name, PAGE) as (_, provider), pytest.raises(Refused) as refused:
        provider.plain(a_call(provider))
    assert refused.value.account


@pytest.mark.parametrize("body", [b"null", b"{}", b'{"data":{}}', b"<html>"])
def test_a_list_that_is_none_is_an_error(name: str, body: bytes):
    with against(name, Reply(body=body)) as (_, provider), pytest.raises(ProviderError):
        provider.find("task", ["a"], datetime.now(UTC), [])


def test_a_list_of_nonsense_has_no_batch_of_ours(name: str):
    body = b'{"data":[null,3,{},{"id":"x","created_at":[]},{"id":{}}],"has_more":true}'
    with against(name, Reply(body=body)) as (_, provider):
        assert provider.find("task", ["a"], datetime.now(UTC), []) is None


def test_a_list_that_never_ends_is_left(name: str):
    body = b'{"data":[{"id":"x"}],"has_more":true,"last_id":"x"}'
    with against(name, Reply(body=body)) as (server, provider):
        assert provider.find("task", ["a"], datetime.now(UTC), []) is None
        assert len(server.asked) == 2


def test_an_id_cannot_lead_to_another_path(name: str):
    with against(name, Reply(body=b'{"id":"x"}')) as (server, provider):
        provider.statuses(["../../files?x=1"])
        assert server.paths()[0].endswith("/batches/..%2F..%2Ffiles%3Fx%3D1")


def test_an_archived_batch_has_ended_and_says_that_its_results_are_gone():
    body = b'{"processing_status":"ended","archived_at":"2026-11-01T00:00:00Z"}'
    with against("anthropic", Reply(body=body)) as (_, provider):
        status = provider.statuses(["x"])["x"]
    assert status.state is BatchState.ENDED
    assert "archived" in status.words


def test_two_open_batches_of_the_size_are_both_named():
    batch = '{{"id":"{0}","processing_status":"{1}","request_counts":{{"processing":1}}}}'
    data = ",".join([batch.format("b1", "in_progress"), batch.format("b2", "canceling")])
    body = f'{{"data":[{data}],"has_more":false}}'.encode()
    with (
        against("anthropic", Reply(body=body)) as (_, provider),
        pytest.raises(InDoubt, match="b2 and b1"),
    ):
        provider.find("task", ["a"], datetime.now(UTC), [])


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("17", 17, 17),
        ("0.5", 0.5, 0.5),
        ("a date", 1500, 1800),
        ("99999999", 24 * 3600, 24 * 3600),
        ("nonsense", 60, 60),
        ("-5", 60, 60),
        ("nan", 60, 60),
    ],
)
def test_how_long_a_provider_asks_to_wait(
    name: str, header: str, least: float, most: float, tmp_path: Path
):
    error = b'{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}'
    if header == "a date":
        header = format_datetime(datetime.now(UTC) + timedelta(minutes=30))
    slow = Reply(429, error, {"retry-after": header})
    with (
        against(name, *taken(name), slow, Reply()) as (_, provider),
        pytest.raises(Refused, match="Slow down") as refused,
    ):
        submit(provider, tmp_path)
    assert refused.value.retry_after is not None
    assert least <= refused.value.retry_after <= most


def test_no_call_sleeps_for_as_long_as_a_provider_says(name: str):
    slow = Reply(429, {"error": {"message": "Slow down."}}, {"retry-after": "3600"})
    with (
        against(name, slow) as (server, provider),
        pytest.raises(ProviderError, match="Slow down"),
    ):
        provider.plain(a_call(provider))
    assert len(server.asked) == 1


def test_a_create_without_an_answer_in_time_is_unknown_and_not_repeated(name: str, tmp_path: Path):
    with bench(name, "gpt-5", tmp_path) as at:
        hasty = open_provider(name, base_url=at.rehearsal.base_url(name), api_key=KEY, timeout=0.5)
        hasty.statuses(["x"])
        at.script(hang_reply_seconds=2)
        with pytest.raises(ProviderError, match="looked up first") as error:
            submit(hasty, tmp_path)
        hasty.close()
        assert not isinstance(error.value, Refused)
        assert at.counts()["creates"] == 1
        assert len(at.batches()) == 1


def test_no_connection_is_unknown(name: str, tmp_path: Path):
    with against(name, Reply()) as (_, provider):
        pass
    with pytest.raises(ProviderError, match="did not answer") as error:
        submit(provider, tmp_path)
    provider.close()
    assert not isinstance(error.value, Refused)


@pytest.mark.parametrize("key", [None, "", "  "])
def test_no_key_is_refused_and_says_what_to_set(
    name: str, key: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for variable in (*VARIABLES.values(), "ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    provider = open_provider(name, api_key=key)
    with pytest.raises(Refused, match=VARIABLES[name]) as refused:
        provider.plain(a_call(provider))
    assert refused.value.account


def test_a_key_may_end_in_a_line_end(name: str):
    with against(name, Reply(body=b'{"id":"x"}'), key=f"{KEY}\n") as (server, provider):
        provider.statuses(["x"])
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "key", ["sk-bad-SECRET\x00SECRET", "sk-bad-SECRETä", "SECRET-bad\nSECRET", "SECRET-bad-plain"]
)
def test_a_key_is_in_no_error_and_no_log(
    name: str, key: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    told = json.dumps({"error": {"type": "authentication_error", "message": f"Wrong: {key}"}})
    caplog.set_level(logging.DEBUG)
    with against(name, Reply(401, told.encode()), key=key) as (_, provider):
        for ask in (
            lambda: provider.plain(a_call(provider)),
            lambda: submit(provider, tmp_path),
            lambda: provider.statuses(["x"]),
            lambda: list(provider.results("x")),
            lambda: provider.cancel("x"),
        ):
            with pytest.raises(ProviderError) as error:
                ask()
            assert "SECRET" not in "".join(traceback.format_exception(error.value))
        assert "SECRET" not in repr(provider)
    assert "SECRET" not in caplog.text


def test_a_missing_sdk_is_told_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, name, None)
    provider = open_provider(name, api_key=KEY)
    with pytest.raises(MissingExtra, match=rf"pip install 'recipes-orchestration\[{name}\]'"):
        provider.plain(a_call(provider))


def test_calls_are_made_and_answers_read_without_the_sdk(name: str):
    code = (
        "import sys; sys.modules['anthropic'] = sys.modules['openai'] = None\n"
        "sys.modules['httpx2'] = None\n"
        "from recipes_orchestration.providers.registry import open_provider\n"
        "from recipes_orchestration.steps.ask import Ask, Text\n"
        f"provider = open_provider({name!r})\n"
        "call = provider.call(Ask((Text('Read.'),), 10), 'm')\n"
        "print(provider.read_line(provider.line(call.id, call)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("None\n", "")


def test_an_unknown_provider_is_told_with_those_that_are():
    with pytest.raises(ConfigError, match="no provider nobody; there are anthropic"):
        open_provider("nobody")


def test_plain_calls_may_come_from_many_threads(name: str, tmp_path: Path):
    with bench(name, "gpt-5", tmp_path) as at, ThreadPoolExecutor(8) as pool:
        done = list(pool.map(at.provider.plain, at.calls(80)))
    assert [status for status, _ in done] == [200] * 80


def test_a_provider_opens_again_after_it_was_closed(name: str, tmp_path: Path):
    with bench(name, "gpt-5", tmp_path) as at:
        assert at.provider.plain(at.calls(1)[0])[0] == 200
        at.provider.close()
        at.provider.close()
        assert at.provider.plain(at.calls(1)[0])[0] == 200


def test_a_large_file_is_sent_without_being_held(name: str, tmp_path: Path):
    large = tmp_path / "large.jsonl"
    line = b'{"custom_id":"a","params":{"text":"' + b"x" * 999_900 + b'"}}\n'
    with large.open("wb") as out:
        for _ in range(60):
            out.write(line)
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from recipes_orchestration.providers.registry import open_provider\n"
        "from recipes_orchestration.providers.provider import Group\n"
        "name, url, file = sys.argv[1:]\n"
        "provider = open_provider(name, base_url=url, api_key='k')\n"
        "provider.statuses(['x'])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "provider.submit('task', Group('/v1/messages', 'm'), Path(file), [])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    with scripted(Reply(body=b'{"id":"x"}')) as server:
        command = [sys.executable, "-c", code, name, server.url, str(large)]
        done = subprocess.run(command, capture_output=True, text=True)
    kilobytes = int(done.stdout) / (1024 if sys.platform == "darwin" else 1)
    assert kilobytes < 20_000, done.stderr
