"""OpenAI's batches through its SDK, over HTTP at the rehearsal server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.provider import BatchState, Call, Group, LineKind
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Stop, Text

from .provider_batches import Bench, bench

MODEL = "gpt-5-mini"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench("openai", MODEL, tmp_path) as opened:
        yield opened


def kinds(at: Bench, id: str) -> dict[LineKind, int]:
    found = [line.kind for line in at.lines(id) if line is not None]
    return {kind: found.count(kind) for kind in set(found)}


def test_each_request_of_a_batch_is_answered_under_its_id(at: Bench):
    calls = at.calls(3)
    id = at.send(calls)
    status = at.status(id)
    assert (status.state, status.answered, status.requests) == (BatchState.ENDED, 3, 3)
    assert status.words == "completed: 3 completed and 0 failed of 3"
    assert {line.id for line in at.lines(id) if line} == {call.id for call in calls}


def test_a_batch_carries_its_name_and_its_endpoint(at: Bench):
    at.send(at.calls(1), "task-7")
    batch = next(iter(at.rehearsal.sides["openai"].batches.values()))
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


def test_expired_with_3_of_10_answered(at: Bench):
    at.script(expire_after=3)
    id = at.send(at.calls(10))
    status = at.status(id)
    assert (status.state, status.expired) == (BatchState.ENDED, True)
    assert kinds(at, id) == {LineKind.SUCCEEDED: 3, LineKind.EXPIRED: 7}


def test_completed_without_an_output_file_and_9_errors(at: Bench):
    at.script(output_null=True)
    id = at.send(at.calls(9))
    assert at.status(id).state is BatchState.ENDED
    assert kinds(at, id) == {LineKind.ERRORED: 9}


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
    assert kinds(at, id)[LineKind.SUCCEEDED] == 3


def test_cancelled_with_8_output_and_7_error_lines_of_25(at: Bench):
    at.script(never_ends=True, cancel_lines={"output": 8, "error": 7})
    id = at.send(at.calls(25))
    at.provider.cancel(id)
    status = at.status(id)
    assert (status.state, status.answered, status.requests) == (BatchState.ENDED, 15, 25)
    assert kinds(at, id) == {LineKind.SUCCEEDED: 8, LineKind.ERRORED: 7}


def test_a_cancel_that_takes_time_is_running_until_then(at: Bench):
    at.script(never_ends=True, cancel_seconds=60)
    id = at.send(at.calls(2))
    at.provider.cancel(id)
    status = at.status(id)
    assert status.state is BatchState.RUNNING
    assert status.words.startswith("cancelling")


def test_cancelling_what_has_ended_is_no_error(at: Bench):
    id = at.send(at.calls(2))
    at.status(id)
    at.provider.cancel(id)
    assert at.status(id).words.startswith("completed")


def test_cancelling_what_is_forgotten_is_no_error(at: Bench):
    at.provider.cancel("batch_unknown")


def test_broken_utf8_and_null_lines_are_none_among_good_ones(at: Bench):
    at.script(malformed=True)
    id = at.send(at.calls(6))
    at.status(id)
    assert at.lines(id).count(None) == 3
    assert kinds(at, id) == {LineKind.SUCCEEDED: 3}


def test_answers_keep_all_kinds_of_line_ends(at: Bench):
    at.script(unicode_separators=True)
    calls = at.calls(4)
    id = at.send(calls)
    at.status(id)
    for line in at.lines(id):
        assert line is not None
        assert line.response is not None
        text = at.provider.answer(calls[0].group, line.response).text
        assert text.endswith("\u2028line\u2029paragraph\u0085next\r\nend")


def test_permuted_lines_find_their_requests(at: Bench):
    at.script(permute=True)
    calls = at.calls(50)
    id = at.send(calls)
    at.status(id)
    ids = [line.id for line in at.lines(id) if line]
    assert ids != [call.id for call in calls]
    assert sorted(ids) == sorted(call.id for call in calls)


def test_lines_that_were_never_sent_or_come_twice_are_handed_on(at: Bench):
    at.script(foreign_lines=2, duplicate_lines=1)
    calls = at.calls(3)
    id = at.send(calls)
    at.status(id)
    ids = [line.id for line in at.lines(id) if line]
    assert ids.count(calls[0].id) == 2
    assert len(set(ids) - {call.id for call in calls}) == 2


def test_results_may_be_read_any_number_of_times(at: Bench):
    calls = at.calls(3)
    id = at.send(calls)
    at.status(id)
    for _ in range(3):
        assert [line.id for line in at.lines(id) if line] == [call.id for call in calls]


def test_every_line_says_that_the_quota_is_used_up(at: Bench):
    at.script(account_error="You exceeded your current quota, please check your plan.")
    id = at.send(at.calls(3))
    at.status(id)
    lines = at.lines(id)
    assert len(lines) == 3
    assert all(line is not None and line.account for line in lines)


def test_thinking_only_until_the_token_limit_is_truncated(at: Bench):
    at.script(thinking_only=1)
    calls = at.calls(1)
    id = at.send(calls)
    at.status(id)
    (line,) = at.lines(id)
    assert line is not None
    assert line.response is not None
    assert at.provider.answer(calls[0].group, line.response).stop is Stop.TRUNCATED


@pytest.mark.parametrize(
    ("refusal", "words", "waits"),
    [
        ("credit", "Billing hard limit", False),
        ("key", "invalid_api_key", False),
        ("model", "model_not_found", False),
        ("rate", "rate_limit_exceeded", True),
        ("enqueued_tokens", "Enqueued token limit reached", True),
    ],
)
def test_a_create_that_is_refused_for_the_accounts_reasons(
    at: Bench, refusal: str, words: str, waits: bool
):
    at.script(refuse_create=refusal)
    with pytest.raises(Refused, match=words) as refused:
        at.send(at.calls(1))
    assert refused.value.account
    assert (refused.value.retry_after is not None) is waits
    assert at.counts()["creates"] == 1


def test_the_file_of_a_refused_batch_is_deleted(at: Bench):
    at.script(create_status=[400])
    with pytest.raises(Refused) as refused:
        at.send(at.calls(1))
    assert not refused.value.account
    assert (at.counts()["uploads"], at.counts()["deletes"]) == (1, 1)


@pytest.mark.parametrize("status", [408, 409, 500, 503])
def test_a_create_that_ends_in_trouble_is_unknown_and_not_repeated(at: Bench, status: int):
    at.script(create_status=[status])
    with pytest.raises(ProviderError) as error:
        at.send(at.calls(1))
    assert not isinstance(error.value, Refused)
    assert (at.counts()["creates"], at.counts()["deletes"]) == (1, 0)


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


def test_a_batch_the_provider_has_forgotten(at: Bench):
    id = at.send(at.calls(1))
    at.script(forget=[id])
    assert at.status(id).state is BatchState.FORGOTTEN


def test_a_forgotten_batch_among_others(at: Bench):
    ids = [at.send(at.calls(1), f"task-{number}") for number in range(3)]
    at.script(forget=[ids[1]])
    states = {id: status.state for id, status in at.provider.statuses(ids).items()}
    assert states == {
        ids[0]: BatchState.ENDED,
        ids[1]: BatchState.FORGOTTEN,
        ids[2]: BatchState.ENDED,
    }


def test_results_that_break_off_are_an_error(at: Bench):
    id = at.send(at.calls(2_000))
    at.status(id)
    at.script(cut_results=1)
    with pytest.raises(ProviderError, match="did not answer"):
        at.lines(id)
    assert len(at.lines(id)) == 2_000


def test_a_plain_call_is_answered_as_in_a_batch(at: Bench):
    calls = at.calls(3)
    id = at.send(calls)
    at.status(id)
    batch = {line.id: line for line in at.lines(id) if line}
    for call in calls:
        line = at.provider.read_line(at.provider.result_line(call.id, *at.provider.plain(call)))
        assert line is not None
        assert line.response is not None
        other = batch[call.id].response
        assert other is not None
        assert at.provider.answer(call.group, line.response) == at.provider.answer(
            call.group, other
        )


def test_a_plain_call_is_repeated_by_the_sdk(at: Bench):
    at.script(plain_status=[500, 429])
    assert at.provider.plain(at.calls(1)[0])[0] == 200


@pytest.mark.parametrize("status", [429, 500])
def test_a_plain_call_without_an_answer_is_an_error(at: Bench, status: int):
    at.script(plain_status=[status] * 3)
    with pytest.raises(ProviderError, match=f"HTTP {status}") as error:
        at.provider.plain(at.calls(1)[0])
    assert not isinstance(error.value, Refused)


def test_a_plain_call_whose_request_is_wrong_has_an_answer(at: Bench):
    at.script(plain_status=[400])
    call = at.calls(1)[0]
    status, body = at.provider.plain(call)
    line = at.provider.read_line(at.provider.result_line(call.id, status, body))
    assert line is not None
    assert (status, line.kind, line.account) == (400, LineKind.ERRORED, False)


def test_a_plain_call_without_credit_is_refused(at: Bench):
    at.script(account_error="You exceeded your current quota, please check your plan.")
    with pytest.raises(Refused, match="insufficient_quota") as refused:
        at.provider.plain(at.calls(1)[0])
    assert refused.value.account


def test_a_plain_call_of_an_unknown_model_is_refused(at: Bench):
    call = at.provider.call(Ask((Text("Read."),), 10), "gpt-unknown")
    with pytest.raises(Refused, match="model_not_found") as refused:
        at.provider.plain(call)
    assert refused.value.account
