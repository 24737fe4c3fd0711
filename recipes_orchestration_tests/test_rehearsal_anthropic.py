"""The rehearsed Anthropic, asked through Anthropic's own SDK over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from recipes_orchestration.rehearsal import CancelLines, Rehearsal, Script


@pytest.fixture
def client(rehearsal: Rehearsal) -> Iterator[anthropic.Anthropic]:
    with client_of(rehearsal) as opened:
        yield opened


def client_of(rehearsal: Rehearsal, key: str = "any") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=rehearsal.base_url("anthropic"), api_key=key, max_retries=0)


def params(number: int = 0, model: str = "claude-sonnet-4-6") -> Any:
    messages = [{"role": "user", "content": f"page {number}"}]
    return {"model": model, "max_tokens": 100, "messages": messages}


def requests(count: int, **given: Any) -> Any:
    return [{"custom_id": f"id{n}", "params": params(n, **given)} for n in range(count)]


def outcomes(client: anthropic.Anthropic, count: int = 10) -> list[Any]:
    """Each request's outcome in order, after one batch of them."""
    batch = client.messages.batches.create(requests=requests(count))
    return [line.result for line in client.messages.batches.results(batch.id)]


def texts(client: anthropic.Anthropic, count: int = 10) -> list[str]:
    return [result.message.content[0].text for result in outcomes(client, count)]


def result_bytes(rehearsal: Rehearsal, client: anthropic.Anthropic, count: int = 10) -> bytes:
    batch = client.messages.batches.create(requests=requests(count))
    batch = client.messages.batches.retrieve(batch.id)
    assert batch.results_url is not None
    return httpx2.get(batch.results_url, headers={"x-api-key": "any"}).content


def test_a_batch_answers_as_plain_calls_do(client: anthropic.Anthropic):
    plain = [client.messages.create(**params(n)) for n in range(3)]
    batch = [result.message for result in outcomes(client, 3)]
    assert [each.content for each in batch] == [each.content for each in plain]
    assert [each.usage for each in batch] == [each.usage for each in plain]
    assert len({each.content[0].text for each in batch}) == 3


def test_its_life_is_in_progress_then_ended(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(polls=2))
    batch = client.messages.batches.create(requests=requests(2))
    assert (batch.processing_status, batch.results_url) == ("in_progress", None)
    states = [client.messages.batches.retrieve(batch.id).processing_status for _ in range(3)]
    assert states == ["in_progress", "in_progress", "ended"]
    assert client.messages.batches.retrieve(batch.id).request_counts.succeeded == 2


def test_a_delay_is_kept(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(delay_seconds=0.3))
    batch = client.messages.batches.create(requests=requests(1))
    assert client.messages.batches.retrieve(batch.id).processing_status == "in_progress"
    time.sleep(0.35)
    assert client.messages.batches.retrieve(batch.id).processing_status == "ended"


def test_the_list_is_paged_with_the_newest_first(client: anthropic.Anthropic):
    ids = [client.messages.batches.create(requests=requests(1)).id for _ in range(5)]
    assert [each.id for each in client.messages.batches.list(limit=2)] == ids[::-1]
    page = client.messages.batches.list(limit=2, before_id=ids[1])
    assert [each.id for each in page.data] == [ids[3], ids[2]]


def test_a_deleted_batch_is_not_found(client: anthropic.Anthropic):
    batch = client.messages.batches.create(requests=requests(1))
    client.messages.batches.retrieve(batch.id)
    client.messages.batches.delete(batch.id)
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch.id)


def test_a_cancelled_batch_ends_as_ended(rehearsal: Rehearsal, client: anthropic.Anthropic):
    script = Script(never_ends=True, cancel_seconds=0.2, answered_before_cancel=2)
    rehearsal.script("anthropic", script)
    batch = client.messages.batches.create(requests=requests(5))
    assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
    assert client.messages.batches.retrieve(batch.id).processing_status == "canceling"
    time.sleep(0.25)
    batch = client.messages.batches.retrieve(batch.id)
    assert (batch.processing_status, batch.request_counts.canceled) == ("ended", 3)
    kinds = [line.result.type for line in client.messages.batches.results(batch.id)]
    assert kinds == ["succeeded"] * 2 + ["canceled"] * 3


def test_a_cancel_can_leave_errors_too(rehearsal: Rehearsal, client: anthropic.Anthropic):
    lines = CancelLines(output=8, error=7)
    rehearsal.script("anthropic", Script(never_ends=True, cancel_lines=lines))
    batch = client.messages.batches.create(requests=requests(25))
    client.messages.batches.cancel(batch.id)
    counts = client.messages.batches.retrieve(batch.id).request_counts
    assert (counts.succeeded, counts.errored, counts.canceled) == (8, 7, 10)


def test_a_batch_expires_with_what_was_answered(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(expire_after=3))
    kinds = [result.type for result in outcomes(client)]
    assert kinds == ["succeeded"] * 3 + ["expired"] * 7


def test_shares_go_by_the_request(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(error_share=0.3, batches=2))
    first, second = ([each.type for each in outcomes(client, 100)] for _ in range(2))
    assert first == second
    assert 15 < first.count("errored") < 45


@pytest.mark.parametrize(
    ("script", "stop", "content"),
    [
        (Script(refusal_share=1), "refusal", []),
        (Script(empty_share=1), "end_turn", []),
        (Script(thinking_only=1), "max_tokens", ["thinking"]),
        (Script(truncation_share=1), "max_tokens", ["text"]),
    ],
)
def test_answers_that_are_none(
    rehearsal: Rehearsal,
    client: anthropic.Anthropic,
    script: Script,
    stop: str,
    content: list[str],
):
    rehearsal.script("anthropic", script)
    messages = [outcomes(client, 1)[0].message, client.messages.create(**params())]
    assert [each.stop_reason for each in messages] == [stop, stop]
    assert [[block.type for block in each.content] for each in messages] == [content, content]


def test_filtered_is_an_error_of_the_line(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(filtered_share=1))
    error = outcomes(client, 1)[0].error.error
    assert error.message == "Output blocked by content filtering policy"


def test_every_line_can_fail_for_the_account(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(account_error="Your credit balance is too low"))
    errors = [result.error.error for result in outcomes(client, 3)]
    assert {(each.type, each.message) for each in errors} == {
        ("invalid_request_error", "Your credit balance is too low")
    }


def test_an_unknown_model_fails_each_line_and_a_plain_call(client: anthropic.Anthropic):
    batch = client.messages.batches.create(requests=requests(2, model="unknown-1"))
    results = list(client.messages.batches.results(batch.id))
    assert {line.result.error.error.type for line in results} == {"not_found_error"}  # pyright: ignore
    with pytest.raises(anthropic.NotFoundError, match="model: unknown-1"):
        client.messages.create(**params(model="unknown-1"))


def test_lines_are_missing_double_and_foreign(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(missing=2, duplicate_lines=1, foreign_lines=1))
    batch = client.messages.batches.create(requests=requests(5))
    ids = [line.custom_id for line in client.messages.batches.results(batch.id)]
    assert ids == ["id0", "id1", "id2", "id0", "never-sent-0"]


def test_lines_are_permuted(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(permute=True))
    batch = client.messages.batches.create(requests=requests(20))
    ids = [line.custom_id for line in client.messages.batches.results(batch.id)]
    assert ids != sorted(ids, key=lambda id: int(id[2:]))
    assert set(ids) == {f"id{n}" for n in range(20)}


def test_three_lines_are_malformed(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(malformed=True))
    lines = result_bytes(rehearsal, client, 5).split(b"\n")
    assert not lines[0].endswith(b"}")
    with pytest.raises(UnicodeDecodeError):
        lines[1].decode()
    assert lines[2] == b"null"
    assert lines[3].endswith(b"}")


def test_answers_hold_line_separators(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(unicode_separators=True))
    assert all(mark in texts(client, 1)[0] for mark in ("\u2028", "\u2029", "\u0085", "\r\n"))
    assert "\u2028".encode() in result_bytes(rehearsal, client, 1)


def test_a_schema_is_answered_with_an_instance(client: anthropic.Anthropic):
    schema: Any = {
        "type": "object",
        "properties": {"names": {"type": "array"}, "n": {"type": "integer"}},
    }
    tool: Any = {"name": "keep", "input_schema": schema}
    used: Any = client.messages.create(
        **params(), tools=[tool], tool_choice={"type": "tool", "name": "keep"}
    )
    assert used.content[0].input["n"] == 0
    said: Any = client.messages.create(
        **params(), output_config={"format": {"type": "json_schema", "schema": schema}}
    )
    assert said.content[0].text.startswith('{"names":')


def test_a_lost_reply_was_accepted_all_the_same(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(lose_reply=1))
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.batches.create(requests=requests(2))
    assert rehearsal.counts("anthropic")["requests"] == {"id0": 1, "id1": 1}
    client.messages.batches.create(requests=requests(2))
    assert rehearsal.counts("anthropic")["requests"] == {"id0": 2, "id1": 2}


def test_a_late_reply_was_accepted_at_once(rehearsal: Rehearsal):
    rehearsal.script("anthropic", Script(hang_reply_seconds=30))
    with (
        client_of(rehearsal).with_options(timeout=0.3) as client,
        pytest.raises(anthropic.APITimeoutError),
    ):
        client.messages.batches.create(requests=requests(1))
    assert len(rehearsal.counts("anthropic")["batches"]) == 1


def test_statuses_come_in_their_sequence(rehearsal: Rehearsal, client: anthropic.Anthropic):
    script = Script(plain_status=[429, 529, 500, 200], create_status=[500], results_status=[500])
    rehearsal.script("anthropic", script)
    for kind in (anthropic.RateLimitError, anthropic.APIStatusError, anthropic.APIStatusError):
        with pytest.raises(kind):
            client.messages.create(**params())
    assert client.messages.create(**params()).stop_reason == "end_turn"
    with pytest.raises(anthropic.InternalServerError):
        client.messages.batches.create(requests=requests(1))
    assert rehearsal.counts("anthropic")["batches"] == []
    with pytest.raises(anthropic.InternalServerError):
        outcomes(client)


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        ("credit", anthropic.BadRequestError, "credit balance is too low"),
        ("enqueued_tokens", anthropic.RateLimitError, "processing queue"),
        ("key", anthropic.AuthenticationError, "invalid x-api-key"),
        ("model", anthropic.NotFoundError, "model"),
    ],
)
def test_a_create_is_refused(
    rehearsal: Rehearsal, client: anthropic.Anthropic, refusal: Any, kind: Any, words: str
):
    rehearsal.script("anthropic", Script(refuse_create=refusal))
    with pytest.raises(kind, match=words):
        client.messages.batches.create(requests=requests(1))
    assert rehearsal.counts("anthropic")["batches"] == []


@pytest.mark.parametrize("key", ["bad-key", ""])
def test_a_bad_key_is_refused(rehearsal: Rehearsal, key: str):
    answer = httpx2.get(
        rehearsal.base_url("anthropic") + "/v1/messages/batches", headers={"x-api-key": key}
    )
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


def test_a_forgotten_batch_is_not_found(rehearsal: Rehearsal, client: anthropic.Anthropic):
    batch = client.messages.batches.create(requests=requests(1))
    rehearsal.script("anthropic", Script(forget=[batch.id]))
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch.id)
    assert list(client.messages.batches.list()) == []


def test_an_answer_can_have_the_wrong_shape(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(wrong_shape_share=1))
    assert texts(client, 1) == ["Here is the JSON you asked for."]


def test_results_and_plain_calls_can_be_slow(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(slow_results=0.2, plain_seconds=0.2))
    begun = time.monotonic()
    client.messages.create(**params())
    called = time.monotonic()
    assert result_bytes(rehearsal, client, 600).count(b"\n") == 600
    assert called - begun >= 0.2
    assert time.monotonic() - called >= 0.2


def test_results_break_off(rehearsal: Rehearsal, client: anthropic.Anthropic):
    rehearsal.script("anthropic", Script(cut_results=1))
    with pytest.raises(httpx2.RemoteProtocolError):
        result_bytes(rehearsal, client, 1000)
    assert result_bytes(rehearsal, client, 1000).count(b"\n") == 1000


@pytest.mark.parametrize(
    ("custom_ids", "words"),
    [
        (["a b"], "custom_id"),
        (["x" * 65], "custom_id"),
        (["a", "a"], "unique"),
        ([], "at least 1"),
    ],
)
def test_what_is_no_batch_is_refused(
    client: anthropic.Anthropic, custom_ids: list[str], words: str
):
    wrong: Any = [{"custom_id": id, "params": params()} for id in custom_ids]
    with pytest.raises(anthropic.BadRequestError, match=words):
        client.messages.batches.create(requests=wrong)


def test_a_body_over_the_cap_is_refused(
    rehearsal: Rehearsal, client: anthropic.Anthropic, monkeypatch: pytest.MonkeyPatch
):
    from recipes_orchestration.rehearsal import anthropic as side

    monkeypatch.setattr(side, "MAX_BYTES", 1000)
    with pytest.raises(anthropic.APIStatusError, match="maximum size"):
        client.messages.batches.create(requests=requests(20))
