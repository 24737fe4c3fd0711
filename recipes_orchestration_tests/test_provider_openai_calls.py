"""What OpenAI is asked: calls and the lines of a batch's file."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from recipes_orchestration.providers.openai_provider import OpenAIProvider
from recipes_orchestration.providers.provider import Call, Group
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Text

MODEL = "gpt-5-mini"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CLOSED = {**NAME, "additionalProperties": False}


def call(ask: Ask | EmbedAsk, model: str = MODEL) -> Call:
    return OpenAIProvider().call(ask, model)


def body(ask: Ask | EmbedAsk, model: str = MODEL) -> dict[str, Any]:
    return json.loads(call(ask, model).body)


def form(schema: dict[str, Any]) -> dict[str, Any]:
    asked = body(Ask((Text("Read."),), 50, schema=schema))["response_format"]
    assert asked["type"] == "json_schema"
    return asked["json_schema"]


def test_a_text_is_one_user_message():
    made = call(Ask((Text("Read."),), 50))
    assert made.group == Group("/v1/chat/completions", MODEL)
    assert json.loads(made.body) == {
        "model": MODEL,
        "max_completion_tokens": 50,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Read."}]}],
    }


def test_a_picture_travels_as_a_data_url():
    asked = body(Ask((Picture(b"\xff\xd8jpeg", "image/jpeg"), Text("Read.")), 50))
    data = base64.b64encode(b"\xff\xd8jpeg").decode()
    assert asked["messages"][0]["content"] == [
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}},
        {"type": "text", "text": "Read."},
    ]


def test_system_and_temperature_are_sent_when_they_are_given():
    asked = body(Ask((Text("Read."),), 50, system="Be exact.", temperature=0.0))
    assert asked["messages"][0] == {"role": "system", "content": "Be exact."}
    assert asked["temperature"] == 0.0


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("gpt-4o-mini", "max_completion_tokens"),
        ("gpt-5", "max_completion_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("ft:gpt-4.1:org::id", "max_completion_tokens"),
        ("gpt-3.5-turbo", "max_tokens"),
        ("gpt-oss-120b", "max_tokens"),
        ("mistral-large", "max_tokens"),
        ("openchat", "max_tokens"),
    ],
)
def test_the_limit_of_tokens_by_its_name_at_the_model(model: str, limit: str):
    assert body(Ask((Text("Read."),), 50), model)[limit] == 50


@pytest.mark.parametrize("schema", [NAME, CLOSED])
def test_a_schema_is_strict_where_all_is_required(schema: dict[str, Any]):
    assert form(schema) == {"name": "answer", "schema": CLOSED, "strict": True}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"name": {"type": "string"}}},
        {**NAME, "additionalProperties": True},
        {"type": "array", "items": NAME},
        {"type": "object", "properties": {"a": {"oneOf": [{}]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": True}, "required": ["a"]},
    ],
)
def test_a_schema_that_strict_does_not_take_is_sent_as_it_is(schema: dict[str, Any]):
    assert form(schema) == {"name": "answer", "schema": schema, "strict": False}


def test_a_nested_schema_is_closed_at_every_level():
    people = {"type": "array", "items": {"$ref": "#/$defs/person"}, "maxItems": 9}
    schema = {
        "type": "object",
        "properties": {"people": people},
        "required": ["people"],
        "$defs": {"person": {**NAME, "description": "A person."}},
    }
    sent = form(schema)
    assert sent["strict"]
    assert sent["schema"]["$defs"]["person"]["additionalProperties"] is False
    assert sent["schema"]["properties"]["people"] == people


def test_a_vector_is_asked_of_the_embeddings_route():
    made = call(EmbedAsk("Dear Anna", 256), "text-embedding-3-small")
    assert made.group.route == "/v1/embeddings"
    assert json.loads(made.body) == {
        "model": "text-embedding-3-small",
        "input": "Dear Anna",
        "encoding_format": "float",
        "dimensions": 256,
    }


def test_a_line_names_its_route_and_is_ascii_whatever_the_text():
    made = call(Ask((Text("a\u2028b\u2029c\u0085d\r\ne ä \ud800"),), 50))
    line = OpenAIProvider().line(made.id, made)
    assert line.isascii()
    assert (line.count(b"\n"), line.count(b"\r")) == (1, 0)
    assert json.loads(line) == {
        "custom_id": made.id,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": json.loads(made.body),
    }


def test_a_body_of_several_lines_becomes_one_line():
    made = Call("openai", Group("/v1/responses", MODEL), b'{\r\n "model": "m"\n}\n')
    line = OpenAIProvider().line("id", made)
    assert json.loads(line)["body"] == {"model": "m"}
    assert line.count(b"\n") == 1
