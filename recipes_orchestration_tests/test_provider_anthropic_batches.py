"""Anthropic's batches through its SDK, over HTTP at the rehearsal server."""

from __future__ import annotations

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


def test_a_batch_that_goes_on_says_so(at: Bench):
    at.script(polls=1)
    status = at.status(at.send(at.calls(3)))
    assert (status.state, status.answered, status.requests) == (BatchState.RUNNING, 0, 3)
    assert status.words == "in_progress: 3 processing"


def test_betas_travel_as_a_header_of_the_batch(at: Bench):
    group = Group("/v1/messages", MODEL, ("context-1m-2025-08-07", "files-api-2025-04-14"))
    call = Call("anthropic", group, at.calls(1)[0].body)
    at.send([call])
    batch = next(iter(at.rehearsal.side("anthropic").batches.values()))
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


def test_a_cancelled_batch_ends_too_and_every_request_is_accounted_for(at: Bench):
    at.script(never_ends=True, cancel_lines={"output": 8, "error": 7})
    id = at.send(at.calls(25))
    at.provider.cancel(id)
    assert at.status(id).state is BatchState.ENDED
    assert at.status(id).words == "ended: 8 succeeded, 7 errored, 10 canceled"
    assert at.kinds(id) == {
        LineKind.SUCCEEDED: 8,
        LineKind.ERRORED: 7,
        LineKind.CANCELLED: 10,
    }


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


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_create_whose_request_is_wrong_is_refused_for_certain(at: Bench, status: int):
    at.script(create_status=[status])
    with pytest.raises(Refused) as refused:
        at.send(at.calls(1))
    assert (refused.value.account, refused.value.retry_after) == (False, None)


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


def test_results_that_are_not_there_are_an_error(at: Bench):
    at.script(never_ends=True)
    id = at.send(at.calls(1))
    with pytest.raises(ProviderError, match="no available results"):
        at.lines(id)
