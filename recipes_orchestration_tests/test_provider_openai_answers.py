"""What OpenAI answers: result lines, responses of three routes, and the account's errors."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.openai_provider import OpenAIProvider
from recipes_orchestration.providers.provider import Group, Line, LineKind
from recipes_orchestration.steps.ask import Answer, Stop, Usage

PROVIDER = OpenAIProvider()
MODEL = "gpt-5-mini"


def chat(content: Any = "Dear Anna", finish: Any = "stop", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, "refusal": None, **message}
    return {
        "model": MODEL,
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


def response(
    content: list[Any] | None = None, status: str = "completed", **more: Any
) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": "Dear Anna"}] if content is None else content
    reasoning = {"type": "reasoning", "summary": []}
    return {
        "model": MODEL,
        "status": status,
        "output": [reasoning, {"type": "message", "role": "assistant", "content": parts}],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 4},
        },
        **more,
    }


def answer(body: dict[str, Any], route: str = "/v1/chat/completions") -> Answer:
    return PROVIDER.answer(Group(route, MODEL), body)


def read(**entry: Any) -> Line | None:
    return PROVIDER.read_line(
        json.dumps(
            {"id": "b", "custom_id": "a1", "response": None, "error": None, **entry}
        ).encode()
    )


def failed(status: int, error: Any) -> Line:
    line = read(response={"status_code": status, "body": {"error": error}})
    assert line is not None
    assert line.kind is LineKind.ERRORED
    return line


def test_a_complete_chat():
    assert answer(chat()) == Answer(Stop.COMPLETE, Usage(10, 5, 4), text="Dear Anna", model=MODEL)


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (chat(finish="length"), Stop.TRUNCATED),
        (chat("", "length"), Stop.TRUNCATED),
        (chat("", "content_filter"), Stop.FILTERED),
        (chat(None, refusal="I cannot."), Stop.REFUSED),
        (chat(None), Stop.EMPTY),
        (chat("  "), Stop.EMPTY),
        (chat(None, "tool_calls"), Stop.OTHER),
        (chat("text", None), Stop.OTHER),
        ({"choices": []}, Stop.EMPTY),
        ({"choices": [None]}, Stop.OTHER),
    ],
)
def test_why_a_chat_stopped(body: dict[str, Any], stop: Stop):
    assert answer(body).stop is stop


def test_a_refusal_is_kept_in_its_words():
    assert answer(chat(None, refusal="I cannot.")).words == "I cannot."


def test_a_complete_response():
    assert answer(response(), "/v1/responses") == Answer(
        Stop.COMPLETE, Usage(10, 5, 4), text="Dear Anna", model=MODEL
    )


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (
            response([], "incomplete", incomplete_details={"reason": "max_output_tokens"}),
            Stop.TRUNCATED,
        ),
        (
            response(status="incomplete", incomplete_details={"reason": "content_filter"}),
            Stop.FILTERED,
        ),
        (response([{"type": "refusal", "refusal": "I cannot."}]), Stop.REFUSED),
        (response([]), Stop.EMPTY),
        (response([], output=[{"type": "function_call"}]), Stop.OTHER),
        (response(status="failed", error={"message": "broke"}), Stop.OTHER),
    ],
)
def test_why_a_response_stopped(body: dict[str, Any], stop: Stop):
    assert answer(body, "/v1/responses").stop is stop


def test_an_incomplete_response_says_why():
    body = response([], "incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert answer(body, "/v1/responses").words == "status incomplete: max_output_tokens"


@pytest.mark.parametrize(
    "embedding", [[0.5, -1, 2], base64.b64encode(struct.pack("<3f", 0.5, -1, 2)).decode()]
)
def test_a_vector(embedding: Any):
    body = {"model": "m", "data": [{"embedding": embedding}], "usage": {"prompt_tokens": 3}}
    given = answer(body, "/v1/embeddings")
    assert (given.stop, given.vector, given.usage) == (
        Stop.COMPLETE,
        (0.5, -1.0, 2.0),
        Usage(3),
    )


@pytest.mark.parametrize("data", [[], [{"embedding": []}]])
def test_no_vector_is_empty(data: list[Any]):
    assert answer({"data": data}, "/v1/embeddings").stop is Stop.EMPTY


@pytest.mark.parametrize(
    "data",
    [
        None,
        [{"embedding": ["0.5"]}],
        [{"embedding": [True]}],
        [{"embedding": [10**400]}],
        [{"embedding": [float("nan")]}],
        [{"embedding": "not base64"}],
        [{"embedding": "AAA="}],
        [{"embedding": [1]}, {"embedding": [2]}],
    ],
)
def test_what_is_no_vector_is_an_error(data: Any):
    with pytest.raises(StepError, match="OpenAI's answer has not"):
        answer({"data": data}, "/v1/embeddings")


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/responses", "/v1/embeddings"])
def test_a_body_of_another_shape_is_an_error(route: str):
    with pytest.raises(StepError, match="has not"):
        answer({"object": "something else"}, route)


def test_a_route_that_is_not_read_is_an_error():
    with pytest.raises(StepError, match="/v1/moderations is not read"):
        answer({}, "/v1/moderations")


def test_an_answered_line_holds_the_body():
    line = read(response={"status_code": 200, "body": chat()})
    assert line == Line("a1", LineKind.SUCCEEDED, chat())


def test_error_null_and_status_400_is_an_error():
    line = failed(400, {"message": "Invalid image.", "type": "invalid_request_error"})
    assert line.words == "HTTP status 400: invalid_request_error: Invalid image."
    assert not line.account


@pytest.mark.parametrize("status", [0, 199, 302, 429, 500])
def test_any_status_but_a_good_one_is_an_error(status: int):
    assert not failed(status, {"message": "?", "code": "server_error"}).account


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("batch_expired", LineKind.EXPIRED),
        ("batch_cancelled", LineKind.CANCELLED),
        ("request_timeout", LineKind.ERRORED),
        (None, LineKind.ERRORED),
    ],
)
def test_a_line_of_the_error_file(code: str | None, kind: LineKind):
    line = read(error={"code": code, "message": "No time left."})
    assert line is not None
    assert line.kind is kind
    assert line.words.endswith("No time left.")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}),
        (403, {"message": "No access."}),
        (429, {"message": "You exceeded your current quota", "type": "insufficient_quota"}),
        (404, {"message": "The model `x` does not exist", "code": "model_not_found"}),
        (400, {"message": "Billing hard limit", "code": "billing_hard_limit_reached"}),
    ],
)
def test_errors_that_are_the_accounts(status: int, error: dict[str, Any]):
    assert failed(status, error).account


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'{"custom_id":"a"',
        b'{"custom_id":"a"}',
        b'{"custom_id":"a","response":null,"error":null}',
        b'{"custom_id":"a","response":{"status_code":"200","body":{"a":1}}}',
        b'{"custom_id":"a","response":{"status_code":true,"body":{"a":1}}}',
        b'{"custom_id":"a","response":{"status_code":200,"body":null}}',
        b'{"custom_id":7,"response":{"status_code":200,"body":{"a":1}}}',
        b'{"custom_id":"a b","response":{"status_code":200,"body":{"a":1}}}',
        b'{"response":{"status_code":200,"body":{"a":1}}}',
        b'{"custom_id":"\xff\xfe"}',
        b"[" * 100_000,
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_a_broken_line_is_none(line: bytes):
    assert PROVIDER.read_line(line) is None


def test_a_plain_answer_makes_the_line_of_a_batch():
    line = PROVIDER.result_line("a1", 200, json.dumps(chat(), indent=1).encode())
    assert b"\n" not in line
    assert PROVIDER.read_line(line) == read(response={"status_code": 200, "body": chat()})


def test_a_plain_error_makes_the_line_of_a_batch():
    body = {"error": {"message": "Invalid image.", "type": "invalid_request_error"}}
    line = PROVIDER.result_line("a1", 400, json.dumps(body).encode())
    assert PROVIDER.read_line(line) == read(response={"status_code": 400, "body": body})


@pytest.mark.parametrize("body", [b"<html>", b"", b"null", b"\xff", b"[]"])
@pytest.mark.parametrize("status", [200, 400])
def test_a_plain_answer_that_is_no_json_is_an_error(status: int, body: bytes):
    line = PROVIDER.read_line(PROVIDER.result_line("a1", status, body))
    assert line is not None
    assert line.kind is LineKind.ERRORED
    assert "no JSON" in line.words


def test_nothing_like_a_key_is_kept_of_an_errors_words():
    line = failed(401, {"message": "Incorrect API key provided: sk-proj-****************WXYZ."})
    assert "WXYZ" not in line.words
    assert "[key]" in line.words
