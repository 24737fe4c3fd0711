"""Whole batches of Gemini and Bedrock at rehearsed providers, through their SDKs."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.provider import (
    BatchState,
    BatchStatus,
    Call,
    Line,
    LineKind,
    Provider,
)
from recipes_orchestration.providers.registry import open_provider
from recipes_orchestration.rehearsal import CancelLines, Rehearsal, Script, running_rehearsal
from recipes_orchestration.steps.ask import Answer, Ask, EmbedAsk, Picture, Stop, Text

MODELS = {"gemini": "gemini-3-flash", "bedrock": "us.anthropic.claude-sonnet-4-6"}
EMBEDDERS = {"gemini": "gemini-embedding-001", "bedrock": "amazon.titan-embed-text-v2:0"}
ROLE = "arn:aws:iam::111122223333:role/batch"


class Client:
    """One provider and its rehearsal."""

    def __init__(self, name: str, provider: Provider, rehearsal: Rehearsal, folder: Path) -> None:
        self.name = name
        self.provider = provider
        self.rehearsal = rehearsal
        self.folder = folder

    def script(self, **given: Any) -> None:
        self.rehearsal.script(self.name, Script(min_records=1, **given))

    def calls(self, texts: Sequence[str]) -> list[Call]:
        return [self.call(Ask((Text(text),), max_tokens=100)) for text in texts]

    def call(self, ask: Ask | EmbedAsk) -> Call:
        models = EMBEDDERS if isinstance(ask, EmbedAsk) else MODELS
        return self.provider.call(ask, models[self.name])

    def send(self, calls: Sequence[Call], name: str = "our-name") -> str:
        file = self.folder / "requests.jsonl"
        with file.open("wb") as lines:
            for call in calls:
                lines.write(self.provider.line(call.id, call))
        ids = [call.id for call in calls]
        return self.provider.submit(name, calls[0].group, file, ids)

    def sent(self, count: int = 10) -> tuple[str, list[Call]]:
        calls = self.calls([f"text {number}" for number in range(count)])
        return self.send(calls), calls

    def status(self, batch: str) -> BatchStatus:
        return self.provider.statuses([batch])[batch]

    def lines(self, batch: str) -> list[Line]:
        """What can be read of the results of a batch that has ended."""
        assert self.status(batch).state is BatchState.ENDED
        lines = [self.provider.read_line(line) for line in self.provider.results(batch)]
        return [line for line in lines if line is not None]

    def answers(self, batch: str, call: Call) -> list[Answer]:
        lines = self.lines(batch)
        return [self.provider.answer(call.group, line.response or {}) for line in lines]

    def batches(self) -> list[Any]:
        return self.rehearsal.counts(self.name)["batches"]


@pytest.fixture(scope="module")
def running() -> Generator[tuple[Rehearsal, dict[str, Provider]]]:
    with (
        running_rehearsal(["gemini", "bedrock"]) as rehearsal,
        pytest.MonkeyPatch.context() as patch,
    ):
        for key, value in rehearsal.environment().items():
            patch.setenv(key, value)
        patch.delenv("GOOGLE_API_KEY", raising=False)
        bucket = {"bucket": rehearsal.bucket, "role_arn": ROLE, "min_requests": 1}
        providers = {
            "gemini": open_provider("gemini"),
            "bedrock": open_provider("bedrock", **bucket),
        }
        yield rehearsal, providers
        for provider in providers.values():
            provider.close()


@pytest.fixture(params=["gemini", "bedrock"])
def client(
    request: pytest.FixtureRequest,
    running: tuple[Rehearsal, dict[str, Provider]],
    tmp_path: Path,
) -> Client:
    rehearsal, providers = running
    rehearsal.reset()
    made = Client(request.param, providers[request.param], rehearsal, tmp_path)
    made.script()
    return made


def long_ago() -> datetime:
    return datetime.now(UTC) - timedelta(minutes=1)


def test_every_request_is_answered(client: Client):
    batch, calls = client.sent()
    lines = client.lines(batch)
    assert {line.id for line in lines} == {call.id for call in calls}
    assert {line.kind for line in lines} == {LineKind.SUCCEEDED}


def test_a_batch_and_plain_calls_answer_alike(client: Client):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    picture = Picture(b"\xff\xd8 no real jpeg", "image/jpeg")
    asks = [
        Ask((Text("one"),), max_tokens=10, system="be brief", temperature=0.5),
        Ask((picture, Text("two")), max_tokens=10),
        Ask((Text("three"),), max_tokens=10, schema=schema),
    ]
    calls = [client.call(ask) for ask in asks]
    batch = client.send(calls)
    by_batch = {line.id: line for line in client.lines(batch)}
    for call in calls:
        status, body = client.provider.plain(call)
        plain = client.provider.read_line(client.provider.result_line(call.id, status, body))
        assert plain is not None
        answers = [
            client.provider.answer(call.group, line.response or {})
            for line in (plain, by_batch[call.id])
        ]
        assert answers[0] == answers[1]
        assert answers[0].stop is Stop.COMPLETE
        assert answers[0].usage.tokens_in > 0


def test_a_batch_and_plain_calls_give_the_same_vector(client: Client):
    call = client.call(EmbedAsk("a text", 256))
    (in_batch,) = client.answers(client.send([call]), call)
    _, body = client.provider.plain(call)
    plain = client.provider.read_line(client.provider.result_line(call.id, 200, body))
    assert plain is not None
    assert client.provider.answer(call.group, plain.response or {}) == in_batch
    assert in_batch.vector is not None
    assert len(in_batch.vector) == 256


def test_a_batch_goes_on_and_ends(client: Client):
    client.script(polls=2)
    batch, _ = client.sent()
    states = [client.status(batch).state for _ in range(3)]
    assert states == [BatchState.RUNNING, BatchState.RUNNING, BatchState.ENDED]


def test_a_batch_is_found_by_its_name_alone(client: Client):
    batch, calls = client.sent()
    other = client.send(calls, "our-name-2")
    ids = [call.id for call in calls]
    assert client.provider.find("our-name", ids, long_ago(), []) == batch
    assert client.provider.find("our-name-2", ids, long_ago(), []) == other
    assert client.provider.find("our", ids, long_ago(), []) is None
    assert client.provider.find("our-name", ids, long_ago(), [batch]) is None


def test_a_name_with_anything_in_it_is_found(client: Client):
    name = "letters/vol 1/p.0001ä.jpg " * 12
    batch = client.send(client.calls(["a"]), name)
    assert client.provider.find(name, ["a"], long_ago(), []) == batch


def test_a_batch_whose_reply_was_lost_is_there_once_and_found(client: Client):
    client.script(lose_reply=1)
    calls = client.calls(["a", "b"])
    with pytest.raises(ProviderError) as caught:
        client.send(calls)
    assert not isinstance(caught.value, Refused)
    found = client.provider.find("our-name", [call.id for call in calls], long_ago(), [])
    assert [each["id"] for each in client.batches()] == [found]


def test_a_create_that_fails_at_the_server_is_not_made_again(client: Client):
    client.script(create_status=[500])
    with pytest.raises(ProviderError) as caught:
        client.sent()
    assert not isinstance(caught.value, Refused)
    assert client.rehearsal.counts(client.name)["creates"] == 1


@pytest.mark.parametrize("reason", ["credit", "enqueued_tokens", "model", "key", "rate"])
def test_a_create_that_the_account_is_to_blame_for(client: Client, reason: Any):
    client.script(refuse_create=reason)
    with pytest.raises(Refused) as caught:
        client.sent()
    assert caught.value.account
    assert client.batches() == []


def test_an_expired_batch_has_three_of_ten_lines(client: Client):
    client.script(expire_after=3)
    batch, calls = client.sent()
    assert client.status(batch).expired
    assert [line.id for line in client.lines(batch)] == [call.id for call in calls[:3]]


def test_a_batch_that_expired_before_it_began_has_no_lines(client: Client):
    client.script(expire_after=0, polls=1)
    batch, _ = client.sent()
    assert client.status(batch).state is BatchState.RUNNING
    assert client.status(batch).expired
    assert client.lines(batch) == []


def test_a_batch_that_was_accepted_and_failed(client: Client):
    client.script(fail_validation=True, fail_message="Line 3 is not valid JSON.")
    batch, _ = client.sent()
    status = client.status(batch)
    assert (status.state, status.account) == (BatchState.FAILED, False)
    assert "Line 3 is not valid JSON." in status.words


def test_error_lines_keep_the_words(client: Client):
    client.script(status_400_lines=9, error_message="The image cannot be read.")
    batch, _ = client.sent()
    lines = client.lines(batch)
    assert [line.kind for line in lines] == [LineKind.ERRORED] * 9 + [LineKind.SUCCEEDED]
    assert all("The image cannot be read." in line.words for line in lines[:9])
    assert not any(line.account for line in lines)


def test_every_line_may_blame_the_account(client: Client):
    client.script(account_error="Your credit balance is too low")
    batch, _ = client.sent()
    lines = client.lines(batch)
    assert len(lines) == 10
    assert all(line.account and line.kind is LineKind.ERRORED for line in lines)


def test_good_lines_are_read_among_broken_ones(client: Client):
    client.script(malformed=True)
    batch, calls = client.sent()
    assert len(list(client.provider.results(batch))) == 10
    assert {line.id for line in client.lines(batch)} <= {call.id for call in calls}
    assert len(client.lines(batch)) == 7


def test_answers_with_any_separator_stay_whole(client: Client):
    client.script(unicode_separators=True)
    batch, calls = client.sent(3)
    answers = client.answers(batch, calls[0])
    assert len(answers) == 3
    assert all("\u2028line\u2029paragraph\x85next\r\nend" in answer.text for answer in answers)


def test_permuted_lines_name_their_requests(client: Client):
    client.script(permute=True)
    batch, calls = client.sent(20)
    ids = [line.id for line in client.lines(batch)]
    assert ids != [call.id for call in calls]
    assert sorted(ids) == sorted(call.id for call in calls)


def test_lines_that_came_twice_or_were_never_asked_for_come_as_they_are(client: Client):
    client.script(foreign_lines=1, duplicate_lines=2, missing=3)
    batch, calls = client.sent()
    ids = [line.id for line in client.lines(batch)]
    own = [call.id for call in calls]
    assert ids == [*own[:7], *own[:2], "never-sent-0"]


def test_results_may_be_fetched_any_number_of_times(client: Client):
    batch, calls = client.sent()
    fetched = [[line.id for line in client.lines(batch)] for _ in range(3)]
    assert fetched == [[call.id for call in calls]] * 3


def test_a_cancelled_batch_has_what_was_done_by_then(client: Client):
    client.script(never_ends=True, cancel_lines=CancelLines(output=8, error=7))
    batch, calls = client.sent(25)
    client.provider.cancel(batch)
    lines = client.lines(batch)
    kinds = [line.kind for line in lines]
    assert (kinds.count(LineKind.SUCCEEDED), kinds.count(LineKind.ERRORED)) == (8, 7)
    assert len({call.id for call in calls} - {line.id for line in lines}) == 10


def test_a_batch_that_is_being_cancelled_goes_on(client: Client):
    client.script(never_ends=True, cancel_seconds=60)
    batch, _ = client.sent()
    client.provider.cancel(batch)
    client.provider.cancel(batch)
    assert client.status(batch).state is BatchState.RUNNING


def test_a_batch_that_has_ended_may_be_cancelled(client: Client):
    batch, _ = client.sent()
    assert client.status(batch).state is BatchState.ENDED
    client.provider.cancel(batch)


def test_a_batch_that_the_provider_has_forgotten(client: Client):
    batch, _ = client.sent()
    other = client.send(client.calls(["a"]), "other")
    client.script(forget=[batch])
    statuses = client.provider.statuses([batch, other])
    assert statuses[batch].state is BatchState.FORGOTTEN
    assert statuses[other].state is BatchState.ENDED
    client.provider.cancel(batch)
    with pytest.raises(ProviderError):
        list(client.provider.results(batch))


@pytest.mark.parametrize(
    ("share", "stop"),
    [
        ("thinking_only", Stop.TRUNCATED),
        ("truncation_share", Stop.TRUNCATED),
        ("filtered_share", Stop.FILTERED),
        ("refusal_share", Stop.FILTERED),
        ("empty_share", Stop.EMPTY),
    ],
)
def test_an_answer_that_is_no_result(client: Client, share: str, stop: Stop):
    client.script(**{share: 1.0})
    batch, calls = client.sent(2)
    answers = client.answers(batch, calls[0])
    assert [answer.stop for answer in answers] == [stop, stop]
    assert all(answer.words or stop is Stop.EMPTY for answer in answers)
    assert all(answer.usage.tokens_in > 0 for answer in answers)


def test_an_answer_follows_the_schema(client: Client):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    call = client.call(Ask((Text("a"),), max_tokens=10, schema=schema))
    (answer,) = client.answers(client.send([call]), call)
    assert json.loads(answer.text).keys() == {"name"}


def test_truncated_json_is_truncated(client: Client):
    client.script(truncation_share=1.0)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    call = client.call(Ask((Text("a"),), max_tokens=10, schema=schema))
    (answer,) = client.answers(client.send([call]), call)
    assert answer.stop is Stop.TRUNCATED


# Moto's S3, where Bedrock's results are, does not break off.
@pytest.mark.parametrize("client", ["gemini"], indirect=True)
def test_a_fetch_that_breaks_off_is_an_error_and_may_be_made_again(client: Client):
    client.script(cut_results=1)
    batch, _ = client.sent()
    assert client.status(batch).state is BatchState.ENDED
    with pytest.raises(ProviderError):
        list(client.provider.results(batch))
    assert len(list(client.provider.results(batch))) == 10


def test_open_batches_are_looked_at_in_pages(client: Client):
    ids = [client.send(client.calls([f"t{number}"]), f"n{number}") for number in range(130)]
    before = client.rehearsal.counts(client.name)
    assert len(client.provider.statuses(ids)) == 130
    after = client.rehearsal.counts(client.name)
    assert after["lists"] - before["lists"] == (2 if client.name == "gemini" else 1)
    assert after["gets"] == before["gets"]


def test_keys_are_in_no_error(client: Client):
    client.script(refuse_create="key")
    with pytest.raises(Refused) as caught:
        client.sent()
    for value in client.rehearsal.environment().values():
        if "rehearsal" in value and not value.startswith("http"):
            assert value not in str(caught.value)


def test_results_do_not_come_into_memory_as_a_whole(client: Client):
    text = "x" * 200_000
    calls = client.calls([f"{number} {text}" for number in range(100)])
    batch = client.send(calls)
    assert client.status(batch).state is BatchState.ENDED
    tracemalloc.start()
    try:
        # What counts is what the lines leave behind.
        sizes = [len(line) for line in client.provider.results(batch)]
        # The S3 server is in this process too, and holds the last object it sent.
        its_own = tracemalloc.Filter(False, tempfile.__file__)
        traces = tracemalloc.take_snapshot().filter_traces([its_own]).traces
        kept = sum(trace.size for trace in traces)
    finally:
        tracemalloc.stop()
    assert len(sizes) == 100
    # Bedrock repeats each request in its record, which is left out.
    assert max(sizes) < 2000
    assert kept < 20_000_000
