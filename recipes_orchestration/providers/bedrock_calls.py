"""Bedrock's calls: made of a question, and as a record of a batch's file. Pure.

Shapes are those of botocore 1.43's model of bedrock-runtime, of
https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html and of the pages
of the embedding models in that guide (read in November 2026).
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import StepError
from ..steps.ask import Ask, EmbedAsk, Part, Text
from .answer_schemas import anthropic_schema
from .json_values import PICTURE, dump, one_line, quoted
from .provider import Call, Group
from .words_alone import words_alone

__all__ = ["CONVERSE", "INVOKE", "batch_line", "make_call"]

CONVERSE = "converse"
INVOKE = "invoke"

PICTURES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}

# The models that take a schema in Converse, of
# https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-structured-outputs.html
# (November 2026). Others refuse the whole call, so they are told in words; the answer is checked
# when it lands.
WITH_SCHEMAS = re.compile(r"anthropic\.claude-(?:(?:haiku|sonnet|opus)-4-5|opus-4-6)\b")
SCHEMA_WORDS = (
    "Answer with one JSON value and nothing else: no explanation and no code fence. "
    "It must follow this JSON schema:\n"
)


def make_call(ask: Ask | EmbedAsk, model: str) -> Call:
    """The Converse call that asks it, or InvokeModel for a vector.

    `model` is a model id, an inference profile's id, or the ARN of either. Pictures are base64 in
    the body, as the HTTP API has them.
    """
    if isinstance(ask, EmbedAsk):
        return Call("bedrock", Group(INVOKE, model), dump(_vector(ask, model)))
    return words_alone(ask, model, _converse)


def batch_line(id: str, call: Call) -> bytes:
    """The call as a record of the batch's file, with a line end."""
    return b'{"recordId":%b,"modelInput":%b}\n' % (quoted(id), one_line(call.body))


def _converse(ask: Ask, model: str) -> Call:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": [_block(part) for part in ask.parts]}]
    }
    system = [] if ask.system is None else [ask.system]
    closed = _closed(ask, model)
    if ask.schema is not None and closed is None:
        system.append(SCHEMA_WORDS + json.dumps(ask.schema, ensure_ascii=False))
    if system:
        body["system"] = [{"text": text} for text in system]
    settings: dict[str, Any] = {"maxTokens": ask.max_tokens}
    if ask.temperature is not None:
        settings["temperature"] = ask.temperature
    body["inferenceConfig"] = settings
    if closed is not None:
        shape = {"jsonSchema": {"name": "answer", "schema": json.dumps(closed)}}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": shape}}
    return Call("bedrock", Group(CONVERSE, model), dump(body, ask.pictures))


def _closed(ask: Ask, model: str) -> dict[str, Any] | None:
    """The schema as Converse takes it; None where there is none or it must be told in words."""
    if ask.schema is None or not WITH_SCHEMAS.search(model):
        return None
    return anthropic_schema(ask.schema)


def _vector(ask: EmbedAsk, model: str) -> dict[str, Any]:
    if "amazon.titan-embed-text-v2" in model:
        body: dict[str, Any] = {"inputText": ask.text, "normalize": True}
        if ask.dimensions is not None:
            body["dimensions"] = ask.dimensions
        return body
    if "amazon.titan-embed-text-v1" in model or "amazon.titan-embed-g1-text" in model:
        _no_dimensions(ask, model)
        return {"inputText": ask.text}
    if "cohere.embed-v4" in model:
        body = {"texts": [ask.text], "input_type": "search_document", "embedding_types": ["float"]}
        if ask.dimensions is not None:
            body["output_dimension"] = ask.dimensions
        return body
    if "cohere.embed-" in model:
        _no_dimensions(ask, model)
        return {"texts": [ask.text], "input_type": "search_document"}
    raise StepError(
        f"How Bedrock's model {model} is asked for a vector is not known. Use "
        "amazon.titan-embed-text-v2:0 or a model of cohere.embed, or place the step elsewhere."
    )


def _no_dimensions(ask: EmbedAsk, model: str) -> None:
    if ask.dimensions is not None:
        raise StepError(
            f"Bedrock's model {model} has vectors of one length. Leave `dimensions` out."
        )


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    kind = PICTURES.get(part.media_type)
    if kind is None:
        raise StepError(
            f"Bedrock does not take pictures of type {part.media_type}. "
            "Set `format: jpeg`, `png` or `webp` in the step's `image`."
        )
    return {"image": {"format": kind, "source": {"bytes": PICTURE}}}
