"""The rehearsed Gemini, asked through Google's own SDK over HTTP."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from recipes_orchestration.rehearsal import CancelLines, Rehearsal, Script

MODEL = "gemini-x"


@pytest.fixture
def client(rehearsal: Rehearsal) -> Iterator[genai.Client]:
    opened = client_of(rehearsal)
    yield opened
    opened.close()


def client_of(rehearsal: Rehearsal, key: str = "any") -> genai.Client:
    url = rehearsal.base_url("gemini")
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url))


def contents(number: int) -> Any:
    return [{"role": "user", "parts": [{"text": f"page {number}"}]}]


def inline(count: int) -> Any:
    return [{"contents": contents(n), "metadata": {"key": f"id{n}"}} for n in range(count)]


def uploaded(client: genai.Client, content: bytes) -> str:
    file = client.files.upload(file=io.BytesIO(content), config={"mime_type": "application/jsonl"})
    assert file.name is not None
    return file.name


def lines(count: int) -> bytes:
    requests = [{"key": f"id{n}", "request": {"contents": contents(n)}} for n in range(count)]
    return b"".join(json.dumps(each).encode() + b"\n" for each in requests)


def state(batch: Any) -> str:
    return batch.state.value.removeprefix("JOB_STATE_")


def file_batch(client: genai.Client, count: int) -> Any:
    """A batch of a file, after one look at it."""
    batch = client.batches.create(model=MODEL, src=uploaded(client, lines(count)))
    return client.batches.get(name=str(batch.name))


def result_bytes(client: genai.Client, batch: Any) -> bytes:
    return client.files.download(file=batch.dest.file_name)


def results(client: genai.Client, count: int) -> list[Any]:
    found = result_bytes(client, file_batch(client, count)).split(b"\n")
    return [json.loads(each) for each in found if each]


def test_a_batch_of_a_file_answers_as_plain_calls_do(client: genai.Client):
    plain = [client.models.generate_content(model=MODEL, contents=contents(n)).text for n in (0, 1)]
    batched = [each["response"]["candidates"][0] for each in results(client, 2)]
    assert [each["content"]["parts"][0]["text"] for each in batched] == plain


def test_an_inline_batch_answers_inline(client: genai.Client):
    batch = client.batches.create(model=MODEL, src=inline(2), config={"display_name": "ours"})
    assert (state(batch), batch.display_name) == ("PENDING", "ours")
    found: Any = client.batches.get(name=str(batch.name))
    assert state(found) == "SUCCEEDED"
    answers = found.dest.inlined_responses
    assert [each.metadata["key"] for each in answers] == ["id0", "id1"]
    plain = client.models.generate_content(model=MODEL, contents=contents(1)).text
    assert answers[1].response.text == plain


def test_a_batch_takes_its_polls(rehearsal: Rehearsal, client: genai.Client):
    rehearsal.script("gemini", Script(polls=1))
    batch = client.batches.create(model=MODEL, src=inline(1))
    states = [state(client.batches.get(name=str(batch.name))) for _ in range(2)]
    assert states == ["RUNNING", "SUCCEEDED"]


def test_the_list_is_paged_with_the_newest_first(client: genai.Client):
    names = [client.batches.create(model=MODEL, src=inline(1)).name for _ in range(5)]
    found = [each.name for each in client.batches.list(config={"page_size": 2})]
    assert found == names[::-1]


@pytest.mark.filterwarnings("ignore:.*experimental")
def test_embeddings_are_unit_vectors_in_batches_and_plain_calls(client: genai.Client):
    plain: Any = client.models.embed_content(
        model="embed-x", contents="page", config={"output_dimensionality": 8}
    )
    request = {"content": {"parts": [{"text": "page"}]}, "outputDimensionality": 8}
    name = uploaded(client, json.dumps({"key": "a", "request": request}).encode())
    batch = client.batches.create_embeddings(model="embed-x", src={"file_name": name})
    found = result_bytes(client, client.batches.get(name=str(batch.name)))
    values = json.loads(found)["response"]["embedding"]["values"]
    assert values == plain.embeddings[0].values
    assert sum(value * value for value in values) == pytest.approx(1, abs=1e-5)
    inlined: Any = {"inlined_requests": {"contents": ["page", "other"]}}
    batch = client.batches.create_embeddings(model="embed-x", src=inlined)
    whole: Any = client.batches.get(name=str(batch.name))
    assert len(whole.dest.inlined_embed_content_responses) == 2


def test_a_large_file_comes_in_chunks(client: genai.Client):
    request = {"contents": [{"parts": [{"text": "x" * 9_000_000}]}]}
    name = uploaded(client, json.dumps({"key": "a", "request": request}).encode())
    assert client.files.get(name=name).size_bytes == pytest.approx(9_000_000, abs=200)
    batch = client.batches.create(model=MODEL, src=name)
    assert state(client.batches.get(name=str(batch.name))) == "SUCCEEDED"


def test_uploads_cannot_be_downloaded_but_deleted(client: genai.Client):
    name = uploaded(client, b"{}\n")
    with pytest.raises(errors.ClientError, match="Only generated files"):
        client.files.download(file=name)
    client.files.delete(name=name)
    with pytest.raises(errors.ClientError, match="may not exist"):
        client.files.get(name=name)


def test_a_batch_that_never_began_expires_without_output(
    rehearsal: Rehearsal, client: genai.Client
):
    rehearsal.script("gemini", Script(expire_after=0, polls=1))
    batch = client.batches.create(model=MODEL, src=inline(2))
    assert state(client.batches.get(name=str(batch.name))) == "PENDING"
    found = client.batches.get(name=str(batch.name))
    assert (state(found), found.dest) == ("EXPIRED", None)


def test_a_cancelled_batch_has_what_was_answered(rehearsal: Rehearsal, client: genai.Client):
    lines = CancelLines(output=2, error=1)
    rehearsal.script("gemini", Script(never_ends=True, cancel_lines=lines))
    batch = file_batch(client, 5)
    client.batches.cancel(name=batch.name)
    batch = client.batches.get(name=batch.name)
    found = [json.loads(each) for each in result_bytes(client, batch).split(b"\n") if each]
    assert (state(batch), ["error" in each for each in found]) == (
        "CANCELLED",
        [False, False, True],
    )


def test_a_batch_fails_without_output(rehearsal: Rehearsal, client: genai.Client):
    rehearsal.script("gemini", Script(fail_validation=True))
    batch = file_batch(client, 2)
    assert (state(batch), batch.dest) == ("FAILED", None)


@pytest.mark.parametrize(
    ("script", "finish"),
    [
        (Script(truncation_share=1), "MAX_TOKENS"),
        (Script(thinking_only=1), "MAX_TOKENS"),
        (Script(filtered_share=1), "SAFETY"),
        (Script(empty_share=1), "STOP"),
    ],
)
def test_answers_that_are_none(
    rehearsal: Rehearsal, client: genai.Client, script: Script, finish: str
):
    rehearsal.script("gemini", script)
    plain: Any = client.models.generate_content(model=MODEL, contents=contents(0))
    assert plain.candidates[0].finish_reason.value == finish
    assert results(client, 1)[0]["response"]["candidates"][0]["finishReason"] == finish


def test_a_blocked_prompt_has_no_candidates(rehearsal: Rehearsal, client: genai.Client):
    rehearsal.script("gemini", Script(refusal_share=1))
    plain: Any = client.models.generate_content(model=MODEL, contents=contents(0))
    assert plain.candidates is None
    assert plain.prompt_feedback.block_reason.value == "PROHIBITED_CONTENT"


def test_errors_are_lines_with_a_code(rehearsal: Rehearsal, client: genai.Client):
    rehearsal.script("gemini", Script(error_lines=1))
    assert [each.get("error", {}).get("code") for each in results(client, 2)] == [13, None]


def test_a_schema_is_answered_with_an_instance(client: genai.Client):
    properties = {"kind": {"type": "string", "enum": ["letter", "list"]}}
    config: Any = {
        "response_mime_type": "application/json",
        "response_json_schema": {"type": "object", "properties": properties},
    }
    said = client.models.generate_content(model=MODEL, contents=contents(0), config=config)
    assert said.text == '{"kind":"letter"}'


def test_malformed_lines_stand_among_good_ones(rehearsal: Rehearsal, client: genai.Client):
    rehearsal.script("gemini", Script(malformed=True, foreign_lines=1))
    found = result_bytes(client, file_batch(client, 4)).split(b"\n")
    assert found[2] == b"null"
    assert [json.loads(each)["key"] for each in found[3:5]] == ["id3", "never-sent-0"]


def test_a_lost_reply_was_accepted_all_the_same(rehearsal: Rehearsal, client: genai.Client):
    rehearsal.script("gemini", Script(lose_reply=1))
    with pytest.raises(Exception, match="disconnected"):
        client.batches.create(model=MODEL, src=inline(1), config={"display_name": "ours"})
    assert [each.display_name for each in client.batches.list()] == ["ours"]


@pytest.mark.parametrize(
    ("refusal", "code", "words"),
    [
        ("credit", 429, "credits are depleted"),
        ("enqueued_tokens", 429, "enqueued_tokens"),
        ("key", 400, "API key not valid"),
        ("model", 404, "is not found for API version"),
    ],
)
def test_a_create_is_refused(
    rehearsal: Rehearsal, client: genai.Client, refusal: Any, code: int, words: str
):
    rehearsal.script("gemini", Script(refuse_create=refusal))
    with pytest.raises(errors.ClientError, match=words) as refused:
        client.batches.create(model=MODEL, src=inline(1))
    assert refused.value.code == code


def test_an_unknown_model_and_a_bad_key_are_refused(rehearsal: Rehearsal, client: genai.Client):
    with pytest.raises(errors.ClientError, match="models/unknown-1 is not found"):
        client.batches.create(model="unknown-1", src=inline(1))
    bad = client_of(rehearsal, "bad-key")
    with pytest.raises(errors.ClientError, match="API key not valid"):
        bad.batches.create(model=MODEL, src=inline(1))
    bad.close()


def test_a_deleted_batch_is_not_found(client: genai.Client):
    batch = client.batches.create(model=MODEL, src=inline(1))
    client.batches.delete(name=str(batch.name))
    with pytest.raises(errors.ClientError, match="NOT_FOUND"):
        client.batches.get(name=str(batch.name))


def test_inline_requests_over_20_mb_are_refused(client: genai.Client):
    big: Any = [{"contents": [{"role": "user", "parts": [{"text": "x" * 21_000_000}]}]}]
    with pytest.raises(errors.ClientError, match="payload size exceeds"):
        client.batches.create(model=MODEL, src=big)
