"""What Bedrock is asked and answered, without a network."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.bedrock_answers import (
    read_conversed,
    read_invoked,
    read_result,
    result_of,
    without_input,
)
from recipes_orchestration.providers.bedrock_calls import batch_line, make_call
from recipes_orchestration.providers.provider import LineKind
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Stop, Text

MODEL = "us.anthropic.claude-sonnet-4-6"
PROFILE = "arn:aws:bedrock:us-east-1:111122223333:inference-profile/" + MODEL
PICTURE = Picture(b"\x89PNG", "image/png")


def body_of(ask: Ask | EmbedAsk, model: str = MODEL) -> dict[str, Any]:
    return json.loads(make_call(ask, model).body)


def conversed(*blocks: Any, reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(blocks)}
    return {"output": {"message": message}, "stopReason": reason, **more}


def test_a_question_keeps_the_order_of_words_and_pictures():
    body = body_of(Ask((Text("before"), PICTURE, Text("after")), max_tokens=10))
    data = base64.b64encode(PICTURE.data).decode()
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"text": "before"},
                {"image": {"format": "png", "source": {"bytes": data}}},
                {"text": "after"},
            ],
        }
    ]


def test_a_question_says_its_bounds():
    body = body_of(Ask((Text("a"),), max_tokens=10, system="be brief", temperature=0.0))
    assert body["inferenceConfig"] == {"maxTokens": 10, "temperature": 0.0}
    assert body["system"] == [{"text": "be brief"}]


def test_a_schema_is_told_in_the_system_text():
    schema = {"type": "object", "title": "Übung"}
    texts = [each["text"] for each in body_of(Ask((Text("a"),), 10, "s", schema))["system"]]
    assert texts[0] == "s"
    assert texts[1].endswith(json.dumps(schema, ensure_ascii=False))


@pytest.mark.parametrize(
    "model", ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-opus-4-6-v1"]
)
def test_a_schema_is_given_to_models_that_take_one(model: str):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    body = body_of(Ask((Text("a"),), 10, schema=schema), model)
    given = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
    assert json.loads(given) == {**schema, "additionalProperties": False}
    assert "system" not in body


def test_a_schema_that_cannot_be_given_is_told_in_words():
    schema = {"type": "object", "patternProperties": {"x": {}}}
    body = body_of(Ask((Text("a"),), 10, schema=schema), "anthropic.claude-haiku-4-5")
    assert "outputConfig" not in body
    assert "patternProperties" in body["system"][0]["text"]


def test_the_model_stands_in_the_group_alone():
    call = make_call(Ask((Text("a"),), max_tokens=10), PROFILE)
    assert (call.group.route, call.group.model) == ("converse", PROFILE)
    assert PROFILE.encode() not in call.body


def test_titan_is_asked_for_a_vector():
    call = make_call(EmbedAsk("a text", 256), "amazon.titan-embed-text-v2:0")
    assert call.group.route == "invoke"
    assert json.loads(call.body) == {"inputText": "a text", "normalize": True, "dimensions": 256}


def test_cohere_is_asked_for_a_vector():
    assert body_of(EmbedAsk("a text"), "cohere.embed-multilingual-v3") == {
        "texts": ["a text"],
        "input_type": "search_document",
    }


def test_cohere_4_is_asked_for_floats():
    body = body_of(EmbedAsk("a text", 512), "us.cohere.embed-v4:0")
    assert (body["embedding_types"], body["output_dimension"]) == (["float"], 512)


@pytest.mark.parametrize("model", ["cohere.embed-english-v3", "amazon.titan-embed-text-v1"])
def test_vectors_of_one_length_take_no_dimensions(model: str):
    with pytest.raises(StepError, match="dimensions"):
        make_call(EmbedAsk("a", 256), model)


def test_a_model_that_does_not_embed_is_refused_in_words():
    with pytest.raises(StepError, match="titan-embed-text-v2"):
        make_call(EmbedAsk("a"), MODEL)


def test_a_picture_that_bedrock_does_not_take_is_refused():
    with pytest.raises(StepError, match="image/tiff"):
        make_call(Ask((Picture(b"II*", "image/tiff"),), max_tokens=10), MODEL)


@pytest.mark.parametrize("mark", ["", "\u2028", "\u2029", "\x85", "\r\n", "\ud800"])
def test_a_line_carries_the_body_as_it_is(mark: str):
    call = make_call(Ask((Text(f"x{mark}y"),), max_tokens=10), MODEL)
    line = batch_line("f" * 32, call)
    assert len(line.decode().splitlines()) == 1
    assert line.endswith(b"}\n")
    assert call.body in line
    assert json.loads(line)["recordId"] == "f" * 32


def test_a_complete_answer_without_its_reasoning():
    reasoning = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    answer = read_conversed(conversed(reasoning, {"text": "one "}, {"text": "two"}))
    assert (answer.stop, answer.text, answer.words) == (Stop.COMPLETE, "one two", "")


def test_reasoning_alone_is_empty():
    reasoning = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    assert read_conversed(conversed(reasoning)).stop is Stop.EMPTY


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop_sequence", Stop.COMPLETE),
        ("max_tokens", Stop.TRUNCATED),
        ("model_context_window_exceeded", Stop.TRUNCATED),
        ("guardrail_intervened", Stop.FILTERED),
        ("content_filtered", Stop.FILTERED),
        ("tool_use", Stop.OTHER),
        ("malformed_model_output", Stop.OTHER),
        ("something_new", Stop.OTHER),
    ],
)
def test_why_a_model_stopped(reason: str, stop: Stop):
    assert read_conversed(conversed({"text": "a"}, reason=reason)).stop is stop


def test_a_guardrail_says_so():
    answer = read_conversed(conversed({"text": "Sorry."}, reason="guardrail_intervened"))
    assert answer.words == "stopReason guardrail_intervened"


def test_tokens_read_from_a_cache_and_written_to_it_are_tokens_in():
    usage = {
        "inputTokens": 10,
        "outputTokens": 5,
        "cacheReadInputTokens": 100,
        "cacheWriteInputTokens": 20,
        "totalTokens": 135,
    }
    counted = read_conversed(conversed({"text": "a"}, usage=usage)).usage
    assert (counted.tokens_in, counted.tokens_out) == (130, 5)
    assert (counted.tokens_cached, counted.tokens_cache_write) == (100, 20)


@pytest.mark.parametrize(
    "response", [{}, {"output": None}, {"output": {"message": {"content": "no"}}}]
)
def test_what_is_no_answer_is_an_error(response: dict[str, Any]):
    with pytest.raises(StepError):
        read_conversed(response)


def test_wrong_types_inside_are_no_text():
    assert read_conversed(conversed(3, {"text": 3}, None, usage=[1])).stop is Stop.EMPTY


def test_titans_vector_with_its_tokens():
    answer = read_invoked({"embedding": [0.5, -1], "inputTextTokenCount": 7})
    assert (answer.vector, answer.usage.tokens_in) == ((0.5, -1), 7)


@pytest.mark.parametrize("vectors", [[[0.5, 1.0]], {"float": [[0.5, 1.0]]}])
def test_coheres_vector(vectors: Any):
    assert read_invoked({"embeddings": vectors, "texts": ["a"]}).vector == (0.5, 1.0)


@pytest.mark.parametrize(
    "response",
    [{}, {"embedding": ["a"]}, {"embedding": [float("nan")]}, {"embeddings": 3}],
)
def test_what_is_no_vector_is_an_error(response: dict[str, Any]):
    with pytest.raises(StepError, match="no vector"):
        read_invoked(response)


def test_a_vector_without_numbers_is_empty():
    answer = read_invoked({"embedding": []})
    assert (answer.stop, answer.vector) == (Stop.EMPTY, None)


def test_a_message_of_anthropics_own_shape_is_read():
    message = {
        "type": "message",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    assert read_invoked(message).text == "hello"


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\r\n"])
def test_a_result_line_with_odd_line_ends_is_read(mark: str):
    row = {"recordId": "a", "modelOutput": conversed({"text": f"x{mark}y"})}
    line = read_result(json.dumps(row, ensure_ascii=False).encode())
    assert line is not None
    assert line.response is not None
    assert read_conversed(line.response).text == f"x{mark}y"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"3",
        b"[]",
        b"{}",
        b'{"recordId": "a", "modelOutput": {"outp',
        b'{"recordId": "a", "modelOutput": "\xff\xfe"}',
        b'{"recordId": null, "modelOutput": {"a": 1}}',
        b'{"recordId": "a"}',
        b'{"recordId": "a", "modelOutput": null}',
        b"[" * 100_000,
    ],
)
def test_a_broken_line_is_none(line: bytes):
    assert read_result(line) is None


def test_an_error_line_keeps_the_words():
    row = {"recordId": "a", "error": {"errorCode": 400, "errorMessage": "bad request"}}
    line = read_result(json.dumps(row).encode())
    assert line is not None
    assert (line.kind, line.words, line.account) == (LineKind.ERRORED, "400: bad request", False)


@pytest.mark.parametrize(
    "error",
    [
        {"errorCode": 403, "errorMessage": "no"},
        {"errorCode": 400, "errorMessage": "Your credit balance is too low"},
        {"errorCode": 400, "errorMessage": "The provided model identifier is invalid."},
        {"errorCode": 429, "errorMessage": "Too many tokens per day, please wait"},
    ],
)
def test_the_account_is_to_blame(error: dict[str, Any]):
    line = read_result(json.dumps({"recordId": "a", "error": error}).encode())
    assert line is not None
    assert line.account


def test_a_record_is_kept_without_its_request():
    row = {"recordId": "a", "modelInput": {"messages": ["\u2028"]}, "modelOutput": {"a": 1}}
    kept = without_input(json.dumps(row, ensure_ascii=False).encode())
    assert json.loads(kept) == {"recordId": "a", "modelOutput": {"a": 1}}


@pytest.mark.parametrize("line", [b'{"recordId": "a", "modelInput": {', b'["modelInput"]', b"null"])
def test_a_record_that_cannot_be_read_stays_as_it_is(line: bytes):
    assert without_input(line) == line


def test_a_plain_answer_becomes_the_record_of_a_batch():
    response = conversed({"text": "x\u2028y"})
    line = result_of("a", 200, json.dumps(response, indent=2).encode())
    assert b"\n" not in line
    assert json.loads(line) == {"recordId": "a", "modelOutput": response}


def test_a_plain_error_becomes_the_error_record_of_a_batch():
    line = result_of("a", 400, b'{"message": "Could not process image"}')
    assert json.loads(line) == {
        "recordId": "a",
        "error": {"errorCode": 400, "errorMessage": "Could not process image"},
    }


@pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"\xff"])
def test_a_plain_error_without_json_is_an_error_record(body: bytes):
    line = read_result(result_of("a", 400, body))
    assert line is not None
    assert line.words.startswith("400: HTTP status 400")


def test_words_never_carry_a_key():
    error = {"errorCode": 403, "errorMessage": "key AKIAIOSFODNN7EXAMPLE is unknown"}
    line = read_result(json.dumps({"recordId": "a", "error": error}).encode())
    assert line is not None
    assert "AKIA" not in line.words
