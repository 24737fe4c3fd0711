"""What Gemini is asked and answered, without a network."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.gemini_answers import (
    read_generated,
    read_result,
    read_vector,
    result_of,
)
from recipes_orchestration.providers.gemini_calls import batch_line, make_call
from recipes_orchestration.providers.provider import LineKind
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Stop, Text

MODEL = "gemini-3-flash"
PICTURE = Picture(b"\xff\xd8jpeg", "image/jpeg")


def body_of(ask: Ask | EmbedAsk) -> dict[str, Any]:
    return json.loads(make_call(ask, MODEL).body)


def answered(text: str, reason: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], **more}


def test_a_question_keeps_the_order_of_words_and_pictures():
    body = body_of(Ask((Text("before"), PICTURE, Text("after")), max_tokens=10))
    data = base64.b64encode(PICTURE.data).decode()
    assert body["contents"] == [
        {
            "role": "user",
            "parts": [
                {"text": "before"},
                {"inlineData": {"mimeType": "image/jpeg", "data": data}},
                {"text": "after"},
            ],
        }
    ]


def test_a_question_says_its_bounds():
    body = body_of(Ask((Text("a"),), max_tokens=10, system="be brief", temperature=0.0))
    assert body["generationConfig"] == {"maxOutputTokens": 10, "temperature": 0.0}
    assert body["systemInstruction"] == {"parts": [{"text": "be brief"}]}


def test_a_schema_asks_for_json():
    schema = {"type": "object", "properties": {"names": {"type": "array"}}}
    settings = body_of(Ask((Text("a"),), max_tokens=10, schema=schema))["generationConfig"]
    assert settings["responseMimeType"] == "application/json"
    assert settings["responseJsonSchema"] == schema


def test_a_vector_is_asked_for_with_its_length():
    call = make_call(EmbedAsk("a text", 256), "gemini-embedding-001")
    assert call.group.route == ":embedContent"
    assert json.loads(call.body) == {
        "content": {"parts": [{"text": "a text"}]},
        "outputDimensionality": 256,
    }


def test_a_picture_that_gemini_does_not_take_is_refused():
    with pytest.raises(StepError, match="image/tiff"):
        make_call(Ask((Picture(b"II*", "image/tiff"),), max_tokens=10), MODEL)


def test_a_line_carries_the_body_as_it_is():
    call = make_call(Ask((Text("a"),), max_tokens=10), MODEL)
    line = batch_line("f" * 32, call)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert call.body in line
    assert json.loads(line)["key"] == "f" * 32


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\r\n", "\ud800"])
def test_any_character_stays_on_its_line(mark: str):
    line = batch_line("a", make_call(Ask((Text(f"x{mark}y"),), max_tokens=10), MODEL))
    assert line.count(b"\n") == 1
    assert len(line.decode().splitlines()) == 1


def test_a_complete_answer():
    answer = read_generated(answered("what it says", modelVersion="gemini-3-flash-001"))
    assert (answer.stop, answer.text, answer.words) == (Stop.COMPLETE, "what it says", "")
    assert answer.model == "gemini-3-flash-001"


def test_parts_are_joined_and_thoughts_left_out():
    response = answered("")
    response["candidates"][0]["content"]["parts"] = [
        {"text": "let me think", "thought": True},
        {"text": "one "},
        {"text": "two", "thoughtSignature": "x"},
    ]
    assert read_generated(response).text == "one two"


def test_thinking_alone_is_empty():
    response = answered("")
    response["candidates"][0]["content"]["parts"] = [{"text": "hm", "thought": True}]
    assert read_generated(response).stop is Stop.EMPTY


def test_thinking_up_to_the_token_limit_is_truncated():
    response = {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}
    answer = read_generated(response)
    assert (answer.stop, answer.text) == (Stop.TRUNCATED, "")
    assert answer.words == "finishReason MAX_TOKENS"


@pytest.mark.parametrize(
    "reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST", "LANGUAGE"]
)
def test_a_filtered_answer(reason: str):
    assert read_generated(answered("half", reason)).stop is Stop.FILTERED


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "OTHER", "SOMETHING_NEW", None])
def test_any_other_stop_is_no_result(reason: str | None):
    assert read_generated(answered("half", reason)).stop is Stop.OTHER


def test_no_candidates_with_a_block_reason_is_filtered():
    answer = read_generated(
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "why"}}
    )
    assert answer.stop is Stop.FILTERED
    assert answer.words == "prompt blocked, PROHIBITED_CONTENT: why"


def test_no_candidates_and_no_reason_is_empty():
    answer = read_generated({"usageMetadata": {"promptTokenCount": 5}})
    assert (answer.stop, answer.usage.tokens_in) == (Stop.EMPTY, 5)


@pytest.mark.parametrize("response", [{}, {"candidates": "no"}, {"something": 1}])
def test_what_is_no_answer_is_an_error(response: dict[str, Any]):
    with pytest.raises(StepError):
        read_generated(response)


@pytest.mark.parametrize(
    "response",
    [
        {"candidates": [None]},
        {"candidates": [{"content": 3, "finishReason": ["x"]}]},
        {"candidates": [{"content": {"parts": [3, {"text": 3}]}}], "usageMetadata": [1]},
    ],
)
def test_wrong_types_are_no_result(response: dict[str, Any]):
    assert read_generated(response).stop is Stop.OTHER


def test_tokens_are_counted_with_thoughts_and_cache():
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": "30",
        "totalTokenCount": 137,
    }
    counted = read_generated(answered("a", usageMetadata=usage)).usage
    assert (counted.tokens_in, counted.tokens_out, counted.tokens_cached) == (100, 37, 40)


def test_a_vector():
    answer = read_vector({"embedding": {"values": [0.5, -1, 0]}, "tokenCount": "9"})
    assert answer.vector == (0.5, -1, 0)
    assert answer.usage.tokens_in == 9


@pytest.mark.parametrize(
    "values", [None, ["a"], [True], [1.0, None], [float("nan")], [1e400], "no"]
)
def test_what_is_no_vector_is_an_error(values: Any):
    with pytest.raises(StepError, match="no vector"):
        read_vector({"embedding": {"values": values}})


def test_a_vector_without_numbers_is_empty():
    answer = read_vector({"embedding": {"values": []}})
    assert (answer.stop, answer.vector) == (Stop.EMPTY, None)


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\r\n"])
def test_a_result_line_with_odd_line_ends_is_read(mark: str):
    row = {"key": "a", "response": answered(f"x{mark}y")}
    line = read_result(json.dumps(row, ensure_ascii=False).encode())
    assert line is not None
    assert line.response is not None
    assert read_generated(line.response).text == f"x{mark}y"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"3",
        b"[]",
        b'"a"',
        b"{}",
        b'{"key": "a", "response": {"candi',
        b'{"key": "a", "response": "\xff\xfe"}',
        b'{"key": null, "response": {"candidates": []}}',
        b'{"key": 3, "response": {"candidates": []}}',
        b'{"key": "a"}',
        b'{"key": "a", "response": null}',
        b'{"key": "a", "response": []}',
        b"[" * 100_000,
        b'{"key": "a", "response": {"n": ' + b"9" * 5000 + b"}}",
    ],
)
def test_a_broken_line_is_none(line: bytes):
    assert read_result(line) is None


def test_an_error_line_keeps_the_words():
    error = {"code": 3, "message": "Unable to process input image.", "status": "INVALID_ARGUMENT"}
    line = read_result(json.dumps({"key": "a", "error": error}).encode())
    assert line is not None
    assert (line.kind, line.account) == (LineKind.ERRORED, False)
    assert line.words == "3 INVALID_ARGUMENT: Unable to process input image."


def test_an_error_in_place_of_the_response_is_an_error():
    row = {"key": "a", "response": {"error": {"code": 400, "message": "bad"}}}
    line = read_result(json.dumps(row).encode())
    assert line is not None
    assert (line.kind, line.response) == (LineKind.ERRORED, None)


def test_a_cancelled_line():
    line = read_result(b'{"key": "a", "error": {"code": 1, "message": "cancelled"}}')
    assert line is not None
    assert line.kind is LineKind.CANCELLED


@pytest.mark.parametrize(
    "error",
    [
        {"code": 8, "message": "out of quota"},
        {"code": 403, "message": "no"},
        {"code": 3, "message": "API key not valid. Please pass a valid API key."},
        {"code": 400, "message": "Your credit balance is too low"},
        {"code": 404, "message": "models/gone is not found for API version v1beta"},
    ],
)
def test_the_account_is_to_blame(error: dict[str, Any]):
    line = read_result(json.dumps({"key": "a", "error": error}).encode())
    assert line is not None
    assert line.account


def test_words_never_carry_a_key():
    error = {"code": 400, "message": "key AIzaSyA-1234567890abcdef is wrong"}
    line = read_result(json.dumps({"key": "a", "error": error}).encode())
    assert line is not None
    assert "AIza" not in line.words


def test_a_plain_answer_becomes_the_line_of_a_batch():
    response = answered("x\u2028y")
    pretty = json.dumps(response, indent=2).encode()
    line = result_of("a", 200, pretty)
    assert b"\n" not in line
    assert json.loads(line) == {"key": "a", "response": response}


def test_a_plain_error_becomes_the_error_line_of_a_batch():
    error = {"code": 400, "message": "bad image", "status": "INVALID_ARGUMENT"}
    line = result_of("a", 400, json.dumps({"error": error}).encode())
    assert json.loads(line) == {"key": "a", "error": error}


@pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"\xff", b'{"a": 1}'])
def test_a_plain_error_without_json_is_an_error_line(body: bytes):
    line = read_result(result_of("a", 400, body))
    assert line is not None
    assert line.kind is LineKind.ERRORED
    assert line.words.startswith("400: HTTP status 400")


def test_a_plain_answer_that_is_no_json_is_an_error_line():
    line = read_result(result_of("a", 200, b"half an ans"))
    assert line is not None
    assert line.kind is LineKind.ERRORED
