"""The rehearsed OpenAI, asked through OpenAI's own SDK over HTTP."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from recipes_orchestration.rehearsal import CancelLines, Rehearsal, Script

CHAT = "/v1/chat/completions"


@pytest.fixture
def client(rehearsal: Rehearsal) -> Iterator[openai.OpenAI]:
    url = rehearsal.base_url("openai")
    with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as opened:
        yield opened


def body(number: int, model: str = "gpt-x") -> Any:
    return {"model": model, "messages": [{"role": "user", "content": f"page {number}"}]}


def line(id: str, body: Any, url: str = CHAT) -> bytes:
    request = {"custom_id": id, "method": "POST", "url": url, "body": body}
    return json.dumps(request).encode() + b"\n"


def lines(count: int) -> bytes:
    return b"".join(line(f"id{n}", body(n)) for n in range(count))


def created(client: openai.OpenAI, content: bytes, endpoint: Any = CHAT) -> Any:
    file = client.files.create(file=("in.jsonl", io.BytesIO(content)), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint=endpoint,
        completion_window="24h",
        metadata={"name": "ours"},
    )


def ended(client: openai.OpenAI, content: bytes, endpoint: Any = CHAT) -> Any:
    return client.batches.retrieve(created(client, content, endpoint).id)


def content(client: openai.OpenAI, file_id: str | None) -> list[Any]:
    """The lines of a result file; none when there is no file."""
    if file_id is None:
        return []
    found = client.files.content(file_id).content.split(b"\n")
    return [json.loads(each) for each in found if each]


def results(client: openai.OpenAI, batch: Any) -> tuple[list[Any], list[Any]]:
    return content(client, batch.output_file_id), content(client, batch.error_file_id)


def test_a_batch_answers_as_plain_calls_do(client: openai.OpenAI):
    plain = [client.chat.completions.create(**body(n)) for n in range(3)]
    batch = ended(client, lines(3))
    output, errors = results(client, batch)
    assert (batch.status, batch.error_file_id, errors) == ("completed", None, [])
    assert [each["response"]["body"]["choices"] for each in output] == [
        [choice.model_dump(exclude_unset=True) for choice in each.choices] for each in plain
    ]


def test_responses_and_embeddings_answer_alike_too(client: openai.OpenAI):
    asked: Any = {"model": "gpt-x", "input": "page"}
    plain = client.responses.create(**asked).output_text
    output, _ = results(client, ended(client, line("a", asked, "/v1/responses"), "/v1/responses"))
    assert output[0]["response"]["body"]["output"][0]["content"][0]["text"] == plain
    embed: Any = {"model": "embed-x", "input": "page", "dimensions": 8}
    vector = client.embeddings.create(**embed).data[0].embedding
    found = ended(client, line("a", embed, "/v1/embeddings"), "/v1/embeddings")
    output, _ = results(client, found)
    batched = output[0]["response"]["body"]["data"][0]["embedding"]
    assert batched == pytest.approx(vector, abs=1e-6)
    assert sum(value * value for value in batched) == pytest.approx(1, abs=1e-5)


def test_its_life_is_validating_in_progress_completed(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(polls=1))
    batch = created(client, lines(2))
    states = [client.batches.retrieve(batch.id).status for _ in range(2)]
    assert [batch.status, *states] == ["validating", "in_progress", "completed"]
    assert batch.metadata == {"name": "ours"}
    assert rehearsal.counts("openai")["batches"][0]["name"] == "ours"


def test_the_list_is_paged_with_the_newest_first(client: openai.OpenAI):
    ids = [created(client, lines(1)).id for _ in range(5)]
    assert [each.id for each in client.batches.list(limit=2)] == ids[::-1]


def test_files_are_kept_and_deleted(client: openai.OpenAI):
    file = client.files.create(file=("ä.jsonl", io.BytesIO(b"a\r\nb")), purpose="batch")
    assert client.files.content(file.id).content == b"a\r\nb"
    assert client.files.retrieve(file.id).bytes == 4
    client.files.delete(file.id)
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_errors_are_in_the_error_file(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(error_lines=2, status_400_lines=1))
    batch = ended(client, lines(5))
    output, errors = results(client, batch)
    assert [each["custom_id"] for each in output] == ["id3", "id4"]
    assert [each["error"] and each["error"]["code"] for each in errors] == [
        "server_error",
        "server_error",
        None,
    ]
    assert errors[2]["response"]["status_code"] == 400
    assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 3)


def test_the_output_file_can_be_missing(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(output_null=True))
    batch = ended(client, lines(9))
    assert (batch.status, batch.output_file_id) == ("completed", None)
    assert len(content(client, batch.error_file_id)) == 9


def test_a_batch_expires_with_what_was_answered(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(expire_after=3))
    batch = ended(client, lines(10))
    output, errors = results(client, batch)
    assert (batch.status, len(output)) == ("expired", 3)
    assert {each["error"]["code"] for each in errors} == {"batch_expired"}


def test_a_cancelled_batch_leaves_some_requests_out(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(never_ends=True, cancel_lines=CancelLines(output=8, error=7)))
    batch = created(client, lines(25))
    assert client.batches.cancel(batch.id).status == "cancelling"
    batch = client.batches.retrieve(batch.id)
    output, errors = results(client, batch)
    assert (batch.status, len(output), len(errors)) == ("cancelled", 8, 7)


def test_a_batch_fails_validation_without_files(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(fail_validation=True, polls=1))
    batch = created(client, lines(2))
    assert client.batches.retrieve(batch.id).status == "in_progress"
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.output_file_id, batch.error_file_id) == ("failed", None, None)
    assert batch.errors is not None
    assert batch.errors.data is not None
    assert batch.errors.data[0].code == "token_limit_exceeded"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (line("a", body(0)) + line("a", body(1)), "duplicate_custom_id"),
        (line("a", body(0)) + line("b", body(1, "other")), "mismatched_model"),
        (line("a", body(0), "/v1/responses"), "mismatched_url"),
        (b"no json\n", "invalid_json_line"),
        (b"\n", "empty_file"),
        (line("a", body(0, "unknown-1")), "model_not_found"),
    ],
)
def test_a_wrong_file_fails_its_batch(client: openai.OpenAI, content: bytes, code: str):
    batch = ended(client, content)
    assert (batch.status, batch.errors.data[0].code) == ("failed", code)


def test_keys_of_a_line_may_come_in_any_order(client: openai.OpenAI):
    given = {"body": body(0), "url": CHAT, "method": "POST", "custom_id": "a"}
    batch = ended(client, json.dumps(given, indent=None).encode())
    assert content(client, batch.output_file_id)[0]["custom_id"] == "a"


@pytest.mark.parametrize(
    ("script", "finish", "said"),
    [
        (Script(truncation_share=1), "length", True),
        (Script(filtered_share=1), "content_filter", False),
        (Script(thinking_only=1), "length", False),
        (Script(empty_share=1), "stop", False),
    ],
)
def test_answers_that_are_none(
    rehearsal: Rehearsal, client: openai.OpenAI, script: Script, finish: str, said: bool
):
    rehearsal.script("openai", script)
    choice = client.chat.completions.create(**body(0)).choices[0]
    assert (choice.finish_reason, bool(choice.message.content)) == (finish, said)
    output, _ = results(client, ended(client, lines(1)))
    batched = output[0]["response"]["body"]["choices"][0]
    assert batched == choice.model_dump(exclude_unset=True)


def test_a_refusal_is_said_as_one(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(refusal_share=1))
    assert client.chat.completions.create(**body(0)).choices[0].message.refusal
    output: Any = client.responses.create(model="gpt-x", input="page").output
    assert output[0].content[0].type == "refusal"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (Script(truncation_share=1), "max_output_tokens"),
        (Script(thinking_only=1), "max_output_tokens"),
        (Script(filtered_share=1), "content_filter"),
    ],
)
def test_an_incomplete_response_says_why(
    rehearsal: Rehearsal, client: openai.OpenAI, script: Script, reason: str
):
    rehearsal.script("openai", script)
    response = client.responses.create(model="gpt-x", input="page")
    assert response.incomplete_details is not None
    assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)


def test_a_schema_is_answered_with_an_instance(client: openai.OpenAI):
    schema = {"type": "object", "properties": {"year": {"type": "integer", "minimum": 1500}}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    chat = client.chat.completions.create(**body(0), response_format=form)
    assert chat.choices[0].message.content == '{"year":1500}'
    text: Any = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
    response = client.responses.create(model="gpt-x", input="page", text=text)
    assert response.output_text == '{"year":1500}'


def test_a_lost_reply_was_accepted_all_the_same(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(lose_reply=1))
    with pytest.raises(openai.APIConnectionError):
        created(client, lines(2))
    assert [each.metadata for each in client.batches.list()] == [{"name": "ours"}]


def test_an_upload_can_lose_its_reply(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(lose_upload_reply=1))
    with pytest.raises(openai.APIConnectionError):
        created(client, lines(2))
    assert rehearsal.counts("openai")["uploads"] == 1


@pytest.mark.parametrize(
    ("refusal", "kind", "code"),
    [
        ("credit", openai.BadRequestError, "billing_hard_limit_reached"),
        ("enqueued_tokens", openai.RateLimitError, "token_limit_exceeded"),
        ("key", openai.AuthenticationError, "invalid_api_key"),
        ("model", openai.NotFoundError, "model_not_found"),
    ],
)
def test_a_create_is_refused(
    rehearsal: Rehearsal, client: openai.OpenAI, refusal: Any, kind: Any, code: str
):
    rehearsal.script("openai", Script(refuse_create=refusal))
    with pytest.raises(kind) as refused:
        created(client, lines(1))
    assert refused.value.code == code
    assert rehearsal.counts("openai")["batches"] == []


def test_every_line_can_fail_for_the_account(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(account_error="You exceeded your current quota"))
    _, errors = results(client, ended(client, lines(2)))
    assert [each["response"]["body"]["error"]["code"] for each in errors] == [
        "insufficient_quota"
    ] * 2


def test_a_bad_key_is_shown_with_its_middle_hidden(rehearsal: Rehearsal):
    url = rehearsal.base_url("openai")
    with (
        openai.OpenAI(base_url=url, api_key="sk-bad-secret-key", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        client.batches.list()
    assert "secret" not in str(refused.value)


def test_statuses_come_in_their_sequence(rehearsal: Rehearsal, client: openai.OpenAI):
    script = Script(plain_status=[429, 503], status_status=[500], results_status=[500])
    rehearsal.script("openai", script)
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(**body(0))
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**body(0))
    batch = created(client, lines(1))
    with pytest.raises(openai.InternalServerError):
        client.batches.retrieve(batch.id)
    found = client.batches.retrieve(batch.id)
    with pytest.raises(openai.InternalServerError):
        results(client, found)


def test_lines_are_missing_double_foreign_and_permuted(rehearsal: Rehearsal, client: openai.OpenAI):
    rehearsal.script("openai", Script(missing=2, duplicate_lines=1, foreign_lines=1, permute=True))
    output, _ = results(client, ended(client, lines(5)))
    ids = sorted(each["custom_id"] for each in output)
    assert ids == ["id0", "id0", "id1", "id2", "never-sent-0"]
