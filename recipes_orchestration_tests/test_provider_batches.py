"""What batches of Anthropic and of OpenAI have in common, over HTTP at the rehearsal server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes_orchestration.errors import ProviderError, Refused
from recipes_orchestration.providers.provider import BatchState, LineKind
from recipes_orchestration.steps.ask import Ask, Stop, Text

from .provider_batches import Bench, bench

MODELS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5-mini"}
SPENT = {
    "anthropic": "Your credit balance is too low to access the Anthropic API.",
    "openai": "You exceeded your current quota, please check your plan.",
}
# What each refuses a create for, in words of its own, and whether it passes by itself.
REFUSALS = [
    ("anthropic", "credit", "credit balance is too low", False),
    ("anthropic", "key", "authentication_error", False),
    ("anthropic", "model", "model: unknown", False),
    ("anthropic", "rate", "rate_limit_error", True),
    ("anthropic", "enqueued_tokens", "processing queue", True),
    ("openai", "credit", "Billing hard limit", False),
    ("openai", "key", "invalid_api_key", False),
    ("openai", "model", "model_not_found", False),
    ("openai", "rate", "rate_limit_exceeded", True),
    ("openai", "enqueued_tokens", "Enqueued token limit reached", True),
]


@pytest.fixture(params=MODELS)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with bench(request.param, MODELS[request.param], tmp_path) as opened:
        yield opened


def test_each_request_of_a_batch_is_answered_under_its_id(at: Bench):
    calls = at.calls(3)
    id = at.send(calls)
    status = at.status(id)
    assert (status.state, status.answered, status.requests) == (BatchState.ENDED, 3, 3)
    words = {
        "anthropic": "ended: 3 succeeded",
        "openai": "completed: 3 completed and 0 failed of 3",
    }
    assert status.words == words[at.provider.name]
    assert {line.id for line in at.lines(id) if line} == {call.id for call in calls}


def test_expired_with_3_of_10_answered(at: Bench):
    at.script(expire_after=3)
    id = at.send(at.calls(10))
    status = at.status(id)
    assert (status.state, status.expired) == (BatchState.ENDED, True)
    assert at.kinds(id) == {LineKind.SUCCEEDED: 3, LineKind.EXPIRED: 7}


def test_a_cancel_that_takes_time_is_running_until_then(at: Bench):
    at.script(never_ends=True, cancel_seconds=60)
    id = at.send(at.calls(2))
    at.provider.cancel(id)
    status = at.status(id)
    words = {"anthropic": "canceling: 2 processing", "openai": "cancelling"}
    assert status.state is BatchState.RUNNING
    assert status.words.startswith(words[at.provider.name])


def test_cancelling_what_has_ended_is_no_error(at: Bench):
    id = at.send(at.calls(2))
    at.status(id)
    at.provider.cancel(id)
    words = {"anthropic": "ended: 2 succeeded", "openai": "completed"}
    assert at.status(id).words.startswith(words[at.provider.name])


@pytest.mark.parametrize("id", ["msgbatch_unknown", "batch_unknown"])
def test_cancelling_what_is_forgotten_is_no_error(at: Bench, id: str):
    at.provider.cancel(id)


def test_broken_utf8_and_null_lines_are_none_among_good_ones(at: Bench):
    at.script(malformed=True)
    id = at.send(at.calls(6))
    at.status(id)
    assert at.lines(id).count(None) == 3
    assert at.kinds(id) == {LineKind.SUCCEEDED: 3}


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


def test_every_line_says_that_the_account_is_spent(at: Bench):
    at.script(account_error=SPENT[at.provider.name])
    id = at.send(at.calls(3))
    at.status(id)
    lines = [line for line in at.lines(id) if line is not None]
    assert [line.account for line in lines] == [True] * 3
    assert SPENT[at.provider.name].rstrip(".") in lines[0].words


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


@pytest.mark.parametrize(("at", "refusal", "words", "waits"), REFUSALS, indirect=["at"])
def test_a_create_that_is_refused_for_the_accounts_reasons(
    at: Bench, refusal: str, words: str, waits: bool
):
    at.script(refuse_create=refusal)
    with pytest.raises(Refused, match=words) as refused:
        at.send(at.calls(1))
    assert refused.value.account
    assert (refused.value.retry_after is not None) is waits
    assert at.counts()["creates"] == 1


@pytest.mark.parametrize("status", [408, 409, 500, 503, 529])
def test_a_create_that_ends_in_trouble_is_unknown_and_not_repeated(at: Bench, status: int):
    at.script(create_status=[status])
    with pytest.raises(ProviderError) as error:
        at.send(at.calls(1))
    assert not isinstance(error.value, Refused)
    assert (at.counts()["creates"], at.counts()["deletes"]) == (1, 0)


def test_one_batch_is_asked_for_by_its_id(at: Bench):
    at.status(at.send(at.calls(1)))
    assert (at.counts()["lists"], at.counts()["gets"]) == (0, 1)


def test_no_batches_are_asked_for_with_no_call(at: Bench):
    assert at.provider.statuses([]) == {}


def test_a_status_is_asked_for_again_by_the_sdk(at: Bench):
    id = at.send(at.calls(1))
    at.script(status_status=[500])
    assert at.status(id).state is BatchState.ENDED


def test_a_batch_the_provider_has_forgotten(at: Bench):
    id = at.send(at.calls(1))
    at.script(forget=[id])
    assert at.status(id).state is BatchState.FORGOTTEN


def test_a_forgotten_batch_among_others(at: Bench):
    ids = [at.send(at.calls(1, f"Say {number}"), f"task-{number}") for number in range(3)]
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


def test_results_can_be_left_in_the_middle(at: Bench):
    id = at.send(at.calls(5_000))
    at.status(id)
    lines = at.provider.results(id)
    assert next(lines)
    lines.close()  # type: ignore[attr-defined]
    assert at.status(id).state is BatchState.ENDED


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


@pytest.mark.parametrize("statuses", [[529, 429], [500, 429]])
def test_a_plain_call_is_repeated_by_the_sdk(at: Bench, statuses: list[int]):
    at.script(plain_status=statuses)
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
    at.script(account_error=SPENT[at.provider.name])
    words = {"anthropic": "credit balance is too low", "openai": "insufficient_quota"}
    with pytest.raises(Refused, match=words[at.provider.name]) as refused:
        at.provider.plain(at.calls(1)[0])
    assert refused.value.account


def test_a_plain_call_of_an_unknown_model_is_refused(at: Bench):
    call = at.provider.call(Ask((Text("Read."),), 10), "a-model-unknown")
    words = {"anthropic": "model: a-model-unknown", "openai": "model_not_found"}
    with pytest.raises(Refused, match=words[at.provider.name]) as refused:
        at.provider.plain(call)
    assert refused.value.account
