"""Anthropic's batches through its SDK, over HTTP at the rehearsal server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recipes_orchestration.errors import InDoubt, ProviderError, Refused
from recipes_orchestration.providers.anthropic_provider import LIMITS
from recipes_orchestration.providers.provider import BatchState, Call, Group, LineKind
from recipes_orchestration.steps.ask import Ask, Stop, Text

from .provider_batches import Bench, bench

MODEL = "claude-sonnet-4-6"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench("anthropic", MODEL, tmp_path) as opened:
        yield opened


def kinds(at: Bench, id: str) -> dict[LineKind, int]:
    found = [line.kind for line in at.lines(id) if line is not None]
    return {kind: found.count(kind) for kind in set(found)}


def test_each_request_of_a_batch_is_answered_under_its_id(at: Bench):
    calls = at.calls(3)
    id = at.send(calls)
    status = at.status(id)
    assert (status.state, status.answered, status.requests) == (BatchState.ENDED, 3, 3)
    assert status.words == "ended: 3 succeeded"
    assert {line.id for line in at.lines(id) if line} == {call.id for call in calls}


def test_a_batch_that_goes_on_says_so(at: Bench):
    at.script(polls=1)
    status = at.status(at.send(at.calls(3)))
    assert (status.state, status.answered, status.requests) == (BatchState.RUNNING, 0, 3)
    assert status.words == "in_progress: 3 processing"


def test_betas_travel_as_a_header_of_the_batch(at: Bench):
    group = Group("/v1/messages", MODEL, ("context-1m-2025-08-07", "files-api-2025-04-14"))
    call = Call("anthropic", group, at.calls(1)[0].body)
    at.send([call])
    batch = next(iter(at.rehearsal.sides["anthropic"].batches.values()))
    assert batch.details["betas"] == "context-1m-2025-08-07,files-api-2025-04-14"


def test_a_body_may_be_as_large_as_the_limit_and_its_size_is_foretold(at: Bench):
    calls = at.calls(2)
    file = at.file(calls)
    sent: list[bytes] = []
    from recipes_orchestration.providers import anthropic_batches

    with file.open("rb") as lines:
        sent.extend(anthropic_batches._body(lines, file.stat().st_size))
    assert len(b"".join(sent)) == file.stat().st_size + LIMITS.overhead


def test_a_body_over_the_providers_cap_is_refused_for_certain(at: Bench):
    file = at.folder / "large.jsonl"
    with file.open("wb") as out:
        out.truncate(256 * 1024 * 1024)
    with pytest.raises(Refused) as refused:
        at.provider.submit("task", at.calls(1)[0].group, file, [])
    assert not refused.value.account
    assert at.batches() == []


def test_expired_with_3_of_10_answered(at: Bench):
    at.script(expire_after=3)
    id = at.send(at.calls(10))
    status = at.status(id)
    assert (status.state, status.expired) == (BatchState.ENDED, True)
    assert kinds(at, id) == {LineKind.SUCCEEDED: 3, LineKind.EXPIRED: 7}


def test_a_cancelled_batch_ends_too_and_every_request_is_accounted_for(at: Bench):
    at.script(never_ends=True, cancel_lines={"output": 8, "error": 7})
    id = at.send(at.calls(25))
    at.provider.cancel(id)
    assert at.status(id).state is BatchState.ENDED
    assert at.status(id).words == "ended: 8 succeeded, 7 errored, 10 canceled"
    assert kinds(at, id) == {
        LineKind.SUCCEEDED: 8,
        LineKind.ERRORED: 7,
        LineKind.CANCELLED: 10,
    }


def test_a_cancel_that_takes_time_is_running_until_then(at: Bench):
    at.script(never_ends=True, cancel_seconds=60)
    id = at.send(at.calls(2))
    at.provider.cancel(id)
    status = at.status(id)
    assert (status.state, status.words) == (BatchState.RUNNING, "canceling: 2 processing")


def test_cancelling_what_has_ended_is_no_error(at: Bench):
    id = at.send(at.calls(2))
    at.status(id)
    at.provider.cancel(id)
    assert at.status(id).words == "ended: 2 succeeded"


def test_cancelling_what_is_forgotten_is_no_error(at: Bench):
    at.provider.cancel("msgbatch_unknown")


def test_broken_utf8_and_null_lines_are_none_among_good_ones(at: Bench):
    at.script(malformed=True)
    id = at.send(at.calls(6))
    at.status(id)
    lines = at.lines(id)
    assert lines.count(None) == 3
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


def test_every_line_says_that_the_credit_is_too_low(at: Bench):
    at.script(account_error="Your credit balance is too low to access the Anthropic API.")
    id = at.send(at.calls(3))
    at.status(id)
    lines = at.lines(id)
    assert all(line is not None and line.account for line in lines)
    assert lines[0] is not None
    assert "credit balance is too low" in lines[0].words


def test_thinking_only_until_the_token_limit_is_truncated(at: Bench):
    at.script(thinking_only=1)
    calls = at.calls(1)
    id = at.send(calls)
    at.status(id)
    (line,) = at.lines(id)
    assert line is not None
    assert line.response is not None
    answer = at.provider.answer(calls[0].group, line.response)
    assert (answer.stop, answer.text) == (Stop.TRUNCATED, "")
    assert answer.usage.tokens_out > 0


def test_truncated_json_is_truncated(at: Bench):
    at.script(truncation_share=1)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    call = at.provider.call(Ask((Text("Who?"),), 5, schema=schema), MODEL)
    id = at.send([call])
    at.status(id)
    (line,) = at.lines(id)
    assert line is not None
    assert line.response is not None
    assert at.provider.answer(call.group, line.response).stop is Stop.TRUNCATED


@pytest.mark.parametrize(
    ("refusal", "words", "account", "waits"),
    [
        ("credit", "credit balance is too low", True, False),
        ("key", "authentication_error", True, False),
        ("model", "model: unknown", True, False),
        ("rate", "rate_limit_error", True, True),
        ("enqueued_tokens", "processing queue", True, True),
    ],
)
def test_a_create_that_is_refused(at: Bench, refusal: str, words: str, account: bool, waits: bool):
    at.script(refuse_create=refusal)
    with pytest.raises(Refused, match=words) as refused:
        at.send(at.calls(1))
    assert refused.value.account is account
    assert (refused.value.retry_after is not None) is waits
    assert at.counts()["creates"] == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_create_whose_request_is_wrong_is_refused_for_certain(at: Bench, status: int):
    at.script(create_status=[status])
    with pytest.raises(Refused) as refused:
        at.send(at.calls(1))
    assert (refused.value.account, refused.value.retry_after) == (False, None)


@pytest.mark.parametrize("status", [408, 409, 500, 503, 529])
def test_a_create_that_ends_in_trouble_is_unknown_and_not_repeated(at: Bench, status: int):
    at.script(create_status=[status])
    with pytest.raises(ProviderError) as error:
        at.send(at.calls(1))
    assert not isinstance(error.value, Refused)
    assert at.counts()["creates"] == 1


def test_a_lost_reply_is_unknown_and_the_batch_is_found_when_it_has_ended(at: Bench):
    at.script(lose_reply=1)
    calls, since = at.calls(5), datetime.now(UTC)
    with pytest.raises(ProviderError) as error:
        at.send(calls)
    assert not isinstance(error.value, Refused)
    at.rehearsal.finish("anthropic")
    assert at.find(calls, since=since) == at.batches()[0]
    assert len(at.batches()) == 1


def test_a_batch_of_the_same_size_that_goes_on_is_in_doubt(at: Bench):
    at.script(lose_reply=1, never_ends=True)
    calls = at.calls(5)
    with pytest.raises(ProviderError):
        at.send(calls)
    with pytest.raises(InDoubt, match=at.batches()[0]):
        at.find(calls)


def test_a_batch_that_is_known_to_be_another_is_not_found(at: Bench):
    at.script(never_ends=True)
    id = at.send(at.calls(5))
    assert at.find(at.calls(5), known=[id]) is None


def test_a_batch_of_another_size_is_not_found(at: Bench):
    at.script(never_ends=True)
    at.send(at.calls(4))
    assert at.find(at.calls(5)) is None


def test_an_ended_batch_of_other_requests_is_not_found(at: Bench):
    at.status(at.send(at.calls(5, "Other")))
    assert at.find(at.calls(5)) is None


def test_an_ended_batch_of_other_requests_is_left_at_its_first_line(at: Bench):
    at.status(at.send(at.calls(3_000, "Other")))
    assert at.find(at.calls(3_000)) is None
    assert at.counts()["results"] == 1


def test_a_batch_from_before_the_intent_is_not_found(at: Bench):
    calls = at.calls(5)
    at.status(at.send(calls))
    at.age(hours=1)
    assert at.find(calls) is None


def test_a_clock_that_was_put_back_hides_no_batch(at: Bench):
    calls = at.calls(5)
    id = at.send(calls)
    at.rehearsal.finish("anthropic")
    assert at.find(calls, since=datetime.now(UTC) + timedelta(hours=3)) == id


def test_a_batch_is_found_behind_many_later_ones(at: Bench):
    calls = at.calls(2)
    id = at.send(calls)
    for number in range(130):
        at.send(at.calls(1, f"Other {number}"))
    at.rehearsal.finish("anthropic")
    assert at.find(calls) == id
    assert at.counts()["lists"] == 2


def test_a_clock_that_runs_ahead_hides_no_batch(at: Bench, monkeypatch: pytest.MonkeyPatch):
    from recipes_orchestration.providers import batch_lists

    ahead = datetime.now(UTC) + timedelta(hours=3)

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return ahead

    calls = at.calls(5)
    id = at.send(calls)
    at.rehearsal.finish("anthropic")
    monkeypatch.setattr(batch_lists, "datetime", Ahead)
    assert at.find(calls, since=ahead) == id


def test_many_open_batches_are_asked_for_in_one_call(at: Bench):
    at.script(never_ends=True)
    ids = [at.send(at.calls(1, f"Say {number}")) for number in range(150)]
    statuses = at.provider.statuses(ids)
    assert {status.state for status in statuses.values()} == {BatchState.RUNNING}
    assert len(statuses) == 150
    assert (at.counts()["lists"], at.counts()["gets"]) == (1, 0)


def test_one_batch_is_asked_for_by_its_id(at: Bench):
    at.status(at.send(at.calls(1)))
    assert (at.counts()["lists"], at.counts()["gets"]) == (0, 1)


def test_a_batch_the_provider_has_forgotten(at: Bench):
    id = at.send(at.calls(1))
    at.script(forget=[id])
    assert at.status(id).state is BatchState.FORGOTTEN


def test_a_forgotten_batch_among_others(at: Bench):
    ids = [at.send(at.calls(1, f"Say {number}")) for number in range(3)]
    at.script(forget=[ids[1]])
    states = {id: status.state for id, status in at.provider.statuses(ids).items()}
    assert states == {
        ids[0]: BatchState.ENDED,
        ids[1]: BatchState.FORGOTTEN,
        ids[2]: BatchState.ENDED,
    }


def test_no_batches_are_asked_for_with_no_call(at: Bench):
    assert at.provider.statuses([]) == {}


def test_a_status_is_asked_for_again_by_the_sdk(at: Bench):
    id = at.send(at.calls(1))
    at.script(status_status=[500])
    assert at.status(id).state is BatchState.ENDED


def test_results_that_break_off_are_an_error(at: Bench):
    id = at.send(at.calls(2_000))
    at.status(id)
    at.script(cut_results=1)
    with pytest.raises(ProviderError, match="did not answer"):
        at.lines(id)
    assert len(at.lines(id)) == 2_000


def test_results_that_are_not_there_are_an_error(at: Bench):
    at.script(never_ends=True)
    id = at.send(at.calls(1))
    with pytest.raises(ProviderError, match="no available results"):
        at.lines(id)


def test_results_can_be_left_in_the_middle(at: Bench):
    id = at.send(at.calls(5_000))
    at.status(id)
    lines = at.provider.results(id)
    assert next(lines)
    lines.close()  # type: ignore[attr-defined]
    assert at.status(id).state is BatchState.ENDED


def test_a_plain_call_is_answered_as_in_a_batch(at: Bench):
    calls = at.calls(4)
    id = at.send(calls)
    at.status(id)
    batch = {line.id: line for line in at.lines(id) if line}
    for call in random.sample(calls, 4):
        line = at.provider.read_line(at.provider.result_line(call.id, *at.provider.plain(call)))
        assert line is not None
        assert line.response is not None
        other = batch[call.id].response
        assert other is not None
        assert at.provider.answer(call.group, line.response) == at.provider.answer(
            call.group, other
        )


def test_a_plain_call_is_repeated_by_the_sdk(at: Bench):
    at.script(plain_status=[529, 429])
    assert at.provider.plain(at.calls(1)[0])[0] == 200


@pytest.mark.parametrize("status", [429, 500, 529])
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


@pytest.mark.parametrize("status", [401, 403])
def test_a_plain_call_that_the_account_may_not_make_is_refused(at: Bench, status: int):
    at.script(plain_status=[status])
    with pytest.raises(Refused) as refused:
        at.provider.plain(at.calls(1)[0])
    assert refused.value.account


def test_a_plain_call_without_credit_is_refused(at: Bench):
    at.script(account_error="Your credit balance is too low to access the Anthropic API.")
    with pytest.raises(Refused, match="credit balance is too low") as refused:
        at.provider.plain(at.calls(1)[0])
    assert refused.value.account


def test_a_plain_call_of_an_unknown_model_is_refused(at: Bench):
    call = at.provider.call(Ask((Text("Read."),), 10), "claude-unknown")
    with pytest.raises(Refused, match="model: claude-unknown") as refused:
        at.provider.plain(call)
    assert refused.value.account
