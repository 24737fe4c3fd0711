"""What Anthropic is asked: calls and the lines of a batch."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.providers.anthropic_provider import AnthropicProvider
from recipes_orchestration.providers.provider import Call, Group
from recipes_orchestration.steps.ask import Ask, EmbedAsk, Picture, Text

MODEL = "claude-sonnet-4-6"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def call(ask: Ask, model: str = MODEL) -> Call:
    return AnthropicProvider().call(ask, model)


def body(ask: Ask, model: str = MODEL) -> dict[str, Any]:
    return json.loads(call(ask, model).body)


def test_a_text_is_one_user_message():
    asked = body(Ask((Text("Read."),), 50))
    assert asked == {
        "model": MODEL,
        "max_tokens": 50,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Read."}]}],
    }


def test_a_picture_travels_as_base64_in_its_place():
    asked = body(Ask((Picture(b"\xff\xd8jpeg", "image/jpeg"), Text("Read.")), 50))
    picture, text = asked["messages"][0]["content"]
    assert picture["source"] == {
        "type": "base64",
        "media_type": "image/jpeg",
        "data": base64.b64encode(b"\xff\xd8jpeg").decode(),
    }
    assert text["text"] == "Read."


def test_system_and_temperature_are_sent_when_they_are_given():
    asked = body(Ask((Text("Read."),), 50, system="Be exact.", temperature=0.0))
    assert (asked["system"], asked["temperature"]) == ("Be exact.", 0.0)


def test_a_schema_is_sent_as_output_format_and_closed():
    asked = body(Ask((Text("Read."),), 50, schema=NAME))
    form = asked["output_config"]["format"]
    assert form["type"] == "json_schema"
    assert form["schema"] == {**NAME, "additionalProperties": False}


def test_a_bound_of_a_schema_is_told_in_words():
    year = {"type": "integer", "minimum": 1500}
    schema = {"type": "object", "properties": {"year": year}}
    form = body(Ask((Text("Read."),), 50, schema=schema))["output_config"]["format"]
    assert form["schema"]["properties"]["year"] == {
        "type": "integer",
        "description": "{minimum: 1500}",
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"not": {"type": "null"}}}},
        {"type": "object", "properties": {"a": {"description": "Anything."}}},
        {"type": "object", "properties": {"more": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"allOf": [NAME, NAME]}}},
        {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/tree"}},
            "$defs": {
                "tree": {
                    "type": "object",
                    "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                }
            },
        },
    ],
)
def test_a_schema_that_output_format_cannot_hold_becomes_a_tool(schema: dict[str, Any]):
    asked = body(Ask((Text("Read."),), 50, schema=schema))
    assert asked["tool_choice"] == {"type": "tool", "name": "answer"}
    assert asked["tools"][0]["input_schema"] == schema
    assert "output_config" not in asked


@pytest.mark.parametrize(
    "model", ["claude-3-5-haiku-20241022", "claude-sonnet-4-20250514", "claude-opus-4-1"]
)
def test_a_model_without_structured_outputs_gets_a_tool(model: str):
    assert body(Ask((Text("Read."),), 50, schema=NAME), model)["tools"][0]["name"] == "answer"


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5", "claude-opus-4-5-20251101", "claude-haiku-4-5", "claude-opus-5"]
)
def test_a_model_with_structured_outputs_gets_the_schema(model: str):
    assert "output_config" in body(Ask((Text("Read."),), 50, schema=NAME), model)


def test_a_list_is_wrapped_where_a_tool_must_give_it():
    asked = body(Ask((Text("Read."),), 50, schema={"type": "array"}), "claude-3-haiku-20240307")
    assert asked["tools"][0]["name"] == "answer_value"
    assert asked["tools"][0]["input_schema"]["properties"] == {"value": {"type": "array"}}


def test_a_vector_cannot_be_asked_for():
    with pytest.raises(StepError, match="no embedding models"):
        AnthropicProvider().call(EmbedAsk("text"), MODEL)


def test_equal_questions_are_one_call():
    ask = Ask((Text("Read."),), 50)
    assert call(ask).id == call(ask).id != call(ask, "claude-opus-4-6").id


def test_a_line_is_one_line_of_ascii_whatever_the_text():
    made = call(Ask((Text("a\u2028b\u2029c\u0085d\r\ne ä \ud800"),), 50))
    line = AnthropicProvider().line(made.id, made)
    assert line.isascii()
    assert (line.count(b"\n"), line.count(b"\r")) == (1, 0)
    assert json.loads(line) == {"custom_id": made.id, "params": json.loads(made.body)}


def test_a_body_of_several_lines_becomes_one_line():
    made = Call("anthropic", Group("/v1/messages", MODEL), b'{\r\n "model": "m"\n}\n')
    line = AnthropicProvider().line("id", made)
    assert json.loads(line) == {"custom_id": "id", "params": {"model": "m"}}
    assert line.count(b"\n") == 1
