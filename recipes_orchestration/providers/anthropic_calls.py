"""Anthropic's Messages calls: made of a question, and as a line of a batch. Pure."""

from __future__ import annotations

import re
from typing import Any

from ..errors import StepError
from ..steps.ask import Ask, EmbedAsk, Part, Text
from .answer_schemas import anthropic_schema
from .json_values import PICTURE, dump, one_line, quoted
from .provider import Call, Group
from .words_alone import words_alone

__all__ = ["ANSWER_TOOL", "ROUTE", "VALUE_TOOL", "batch_line", "make_call"]

ROUTE = "/v1/messages"
# Tools that a model is made to call where `output_config` cannot hold the schema. The second wraps
# an answer that is no object, as a tool's input must be one.
ANSWER_TOOL = "answer"
VALUE_TOOL = "answer_value"

# Models before 4.5 know no structured outputs:
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs (read November 2026).
WITHOUT_SCHEMAS = re.compile(r"claude-(?:[123]|instant|(?:opus|sonnet)-4-(?:[01](?:-|$)|20\d\d))")


def make_call(ask: Ask | EmbedAsk, model: str) -> Call:
    """The call that asks it; raises `StepError` for a vector, which Anthropic does not give."""
    if isinstance(ask, EmbedAsk):
        raise StepError(
            "Anthropic has no embedding models; place the step on openai, gemini, bedrock or local."
        )
    return words_alone(ask, model, _message)


def batch_line(id: str, call: Call) -> bytes:
    """The call as an entry of the batch's `requests`, with a line end."""
    return b'{"custom_id":%b,"params":%b}\n' % (quoted(id), one_line(call.body))


def _message(ask: Ask, model: str) -> Call:
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": ask.max_tokens,
        "messages": [{"role": "user", "content": [_block(part) for part in ask.parts]}],
    }
    if ask.system is not None:
        body["system"] = ask.system
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    if ask.schema is not None:
        body |= _schema(ask.schema, model)
    return Call("anthropic", Group(ROUTE, model), dump(body, ask.pictures))


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.media_type, "data": PICTURE}
    return {"type": "image", "source": source}


def _schema(schema: Any, model: str) -> dict[str, Any]:
    closed = None if WITHOUT_SCHEMAS.match(model) else anthropic_schema(schema)
    if closed is not None:
        return {"output_config": {"format": {"type": "json_schema", "schema": closed}}}
    name, shape = ANSWER_TOOL, dict(schema)
    if schema.get("type") != "object":
        name = VALUE_TOOL
        shape = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    tool = {"name": name, "description": "Gives the answer.", "input_schema": shape}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": name}}
