"""OpenAI's batches through its SDK, over HTTP at the rehearsal server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.provider import BatchState, Call, Group, LineKind
from recipes_orchestration.steps.ask import EmbedAsk, Stop

from .provider_batches import Bench, bench

MODEL = "gpt-5-mini"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench("openai", MODEL, tmp_path) as opened:
        yield opened


def test_a_batch_carries_its_name_and_its_endpoint(at: Bench):
    at.send(at.calls(1), "task-7")
    batch = next(iter(at.rehearsal.side("openai").batches.values()))
    assert batch.name == "task-7"
    assert batch.details["endpoint"] == "/v1/chat/completions"


def test_vectors_go_as_a_batch_too(at: Bench):
    call = at.provider.call(EmbedAsk("Dear Anna", 8), "text-embedding-3-small")
    id = at.send([call])
    assert at.status(id).state is BatchState.ENDED
    (line,) = at.lines(id)
    assert line is not None
    assert line.response is not None
    vector = at.provider.answer(call.group, line.response).vector
    assert vector is not None
    assert len(vector) == 8


def test_responses_go_as_a_batch_too(at: Bench):
    body = json.dumps({"model": MODEL, "input": "Say 1"}).encode()
    call = Call("openai", Group("/v1/responses", MODEL), body)
    id = at.send([call])
    assert at.status(id).state is BatchState.ENDED
    (line,) = at.lines(id)
    assert line is not None
    assert line.response is not None
    assert at.provider.answer(call.group, line.response).stop is Stop.COMPLETE


def test_a_batch_that_goes_on_says_so(at: Bench):
    at.script(polls=1)
    status = at.status(at.send(at.calls(3)))
    assert (status.state, status.words) == (
        BatchState.RUNNING,
        "in_progress: 0 completed and 0 failed of 3",
    )


def test_a_file_over_the_providers_cap_fails_as_a_whole(at: Bench):
    file = at.folder / "large.jsonl"
    with file.open("wb") as out:
        out.truncate(200 * 1024 * 1024 + 1)
    status = at.status(at.provider.submit("task", at.calls(1)[0].group, file, []))
    assert (status.state, status.account) == (BatchState.FAILED, False)


def test_completed_without_an_output_file_and_9_errors(at: Bench):
    at.script(output_null=True)
    id = at.send(at.calls(9))
    assert at.status(id).state is BatchState.ENDED
    assert at.kinds(id) == {LineKind.ERRORED: 9}


def test_validating_then_failed_without_files(at: Bench):
    at.script(fail_validation=True, fail_message="Line 3 is not JSON.")
    id = at.send(at.calls(3))
    status = at.status(id)
    assert (status.state, status.account) == (BatchState.FAILED, False)
    assert "Line 3 is not JSON." in status.words
    assert at.lines(id) == []


def test_failed_for_the_enqueued_token_limit_is_the_accounts(at: Bench):
    at.script(fail_validation=True)
    status = at.status(at.send(at.calls(3)))
    assert (status.state, status.account) == (BatchState.FAILED, True)
    assert "Enqueued token limit reached" in status.words


def test_lines_with_error_null_and_status_400(at: Bench):
    at.script(status_400_lines=2, error_message="Invalid image.")
    id = at.send(at.calls(5))
    at.status(id)
    bad = [line for line in at.lines(id) if line and line.kind is LineKind.ERRORED]
    assert len(bad) == 2
    assert "HTTP status 400" in bad[0].words
    assert "Invalid image." in bad[0].words
    assert at.kinds(id)[LineKind.SUCCEEDED] == 3


def test_cancelled_with_8_output_and_7_error_lines_of_25(at: Bench):
    at.script(never_ends=True, cancel_lines={"output": 8, "error": 7})
    id = at.send(at.calls(25))
    at.provider.cancel(id)
    status = at.status(id)
    assert (status.state, status.answered, status.requests) == (BatchState.ENDED, 15, 25)
    assert at.kinds(id) == {LineKind.SUCCEEDED: 8, LineKind.ERRORED: 7}


def test_the_file_of_a_refused_batch_is_deleted(at: Bench):
    at.script(create_status=[400])
    with pytest.raises(Refused) as refused:
        at.send(at.calls(1))
    assert not refused.value.account
    assert (at.counts()["uploads"], at.counts()["deletes"]) == (1, 1)


def test_a_lost_reply_is_unknown_and_the_batch_is_found_by_its_name(at: Bench):
    at.script(lose_reply=1, never_ends=True)
    calls, since = at.calls(5), datetime.now(UTC)
    with pytest.raises(ProviderError) as error:
        at.send(calls)
    assert not isinstance(error.value, Refused)
    assert at.find(calls, since=since) == at.batches()[0]
    assert len(at.batches()) == 1


def test_a_lost_reply_to_the_upload_makes_no_batch(at: Bench):
    at.script(lose_upload_reply=1)
    calls = at.calls(5)
    with pytest.raises(ProviderError) as error:
        at.send(calls)
    assert not isinstance(error.value, Refused)
    assert at.find(calls) is None
    assert (at.counts()["uploads"], at.counts()["creates"]) == (1, 0)


def test_the_oldest_of_a_name_is_found(at: Bench):
    first = at.send(at.calls(5))
    at.send(at.calls(5))
    assert at.find(at.calls(5)) == first


def test_a_batch_of_another_name_is_not_found(at: Bench):
    at.send(at.calls(5), "task-2")
    assert at.find(at.calls(5), "task-1") is None


def test_a_batch_that_is_known_to_be_another_is_not_found(at: Bench):
    first = at.send(at.calls(5))
    second = at.send(at.calls(5))
    assert at.find(at.calls(5), known=[first]) == second


def test_a_batch_is_found_behind_many_later_ones(at: Bench):
    calls = at.calls(2)
    id = at.send(calls)
    for number in range(110):
        at.send(at.calls(1, f"Other {number}"), f"other-{number}")
    assert at.find(calls) == id
    assert at.counts()["lists"] == 2


def test_batches_from_long_before_the_intent_are_not_paged_through(at: Bench):
    for number in range(110):
        at.send(at.calls(1, f"Other {number}"), f"other-{number}")
    at.age(hours=1)
    assert at.find(at.calls(1)) is None
    assert at.counts()["lists"] == 1


def test_many_open_batches_are_asked_for_by_full_pages(at: Bench):
    at.script(never_ends=True)
    ids = [at.send(at.calls(1, f"Say {number}"), f"task-{number}") for number in range(120)]
    statuses = at.provider.statuses(ids)
    assert {status.state for status in statuses.values()} == {BatchState.RUNNING}
    assert len(statuses) == 120
    assert (at.counts()["lists"], at.counts()["gets"]) == (2, 0)
