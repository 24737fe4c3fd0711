"""Bedrock's responses and output records, of Converse and of InvokeModel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import anthropic_answers
from .answers import Asked, asked_of, encoded, tokens_in, tokens_of, vector
from .batch import Batch, mended
from .bodies import Lines
from .fates import Fate
from .script import Script
from .side import token

__all__ = ["ask", "asked_in", "foreign_line", "record", "response"]


def ask(lines: Lines, number: int) -> Asked:
    """What one record asks."""
    return asked_in(mended(lines.raw(number)).get("modelInput"))


def asked_in(body: Any, model: str = "") -> Asked:
    """What the body of a call asks, of Converse or of a model's own kind."""
    if not isinstance(body, dict):
        body = {}
    if "anthropic_version" in body:
        asked = anthropic_answers.asked_in(encoded(body))
        tokens = tokens_in(body, "bedrock", model)
        return Asked(asked.digest, model, tokens, asked.schema, asked.tool, asked.body)
    form: Any = (body.get("outputConfig") or {}).get("textFormat") or {}
    if form.get("type") == "json_schema":
        schema = ((form.get("structure") or {}).get("jsonSchema") or {}).get("schema")
        shape = json.loads(schema) if isinstance(schema, str) else schema
        return asked_of(body, model, shape, provider="bedrock")
    tools: Any = body.get("toolConfig") or {}
    choice = tools.get("toolChoice") or {}
    for tool in tools.get("tools") or []:
        spec = tool.get("toolSpec") or {}
        if "any" in choice or (choice.get("tool") or {}).get("name") == spec.get("name"):
            schema = (spec.get("inputSchema") or {}).get("json")
            return asked_of(body, model, schema, str(spec.get("name")), provider="bedrock")
    return asked_of(body, model, _told_in_words(body), provider="bedrock")


def _told_in_words(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema after the words `JSON schema:` of a system text, which models follow too."""
    for block in body.get("system") or []:
        text = block.get("text") if isinstance(block, dict) else None
        _, found, schema = str(text).partition("JSON schema:\n")
        if found:
            read = mended(schema.encode("utf-8", "surrogatepass"))
            return read or None
    return None


def response(asked: Asked, fate: Fate, script: Script, *, converse: bool) -> dict[str, Any]:
    """The body that answers."""
    body = asked.body
    if not converse:
        if "anthropic_version" in body:
            return anthropic_answers.message(asked, fate, script)
        if "inputText" in body and "embed" in asked.model:
            return _titan_embedding(body, fate)
        if "texts" in body:
            return _cohere_embeddings(body, fate)
    return _converse(asked, fate, script)


def _converse(asked: Asked, fate: Fate, script: Script) -> dict[str, Any]:
    text = asked.text(script)
    content: list[dict[str, Any]] = [{"text": text}]
    stop = "end_turn"
    if fate is Fate.WRONG_SHAPE:
        content = [{"text": "Here is the JSON you asked for."}]
    elif fate is Fate.REFUSED:
        content, stop = [{"text": "Sorry, this request was blocked."}], "guardrail_intervened"
    elif fate is Fate.FILTERED:
        content, stop = [], "content_filtered"
    elif fate is Fate.TRUNCATED:
        content, stop = [{"text": text[: len(text) // 2]}], "max_tokens"
    elif fate is Fate.THINKING:
        thought = {"reasoningText": {"text": "Let me think.", "signature": "c2ln"}}
        content, stop = [{"reasoningContent": thought}], "max_tokens"
    elif fate is Fate.EMPTY:
        content = []
    elif asked.tool:
        use = {"toolUseId": f"tooluse_{token()}", "name": asked.tool, "input": asked.value(script)}
        content, stop = [{"toolUse": use}], "tool_use"
    output = tokens_of(text)
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": {
            "inputTokens": asked.input_tokens,
            "outputTokens": output,
            "totalTokens": asked.input_tokens + output,
            "cacheReadInputTokens": 0,
            "cacheWriteInputTokens": 0,
        },
        "metrics": {"latencyMs": 1},
    }


def _titan_embedding(body: Mapping[str, Any], fate: Fate) -> dict[str, Any]:
    text = str(body["inputText"])
    values = vector(text, _size(body.get("dimensions"), fate))
    return {"embedding": values, "inputTextTokenCount": tokens_in(text)}


def _cohere_embeddings(body: Mapping[str, Any], fate: Fate) -> dict[str, Any]:
    size = _size(body.get("output_dimension"), fate)
    vectors = [vector(str(text), size) for text in body["texts"]]
    found = {"float": vectors} if body.get("embedding_types") else vectors
    return {"id": token(), "embeddings": found, "texts": body["texts"], "response_type": "x"}


def _size(asked: Any, fate: Fate) -> int:
    return {Fate.EMPTY: 0, Fate.WRONG_SHAPE: 3}.get(fate, int(asked or 256))


def record(batch: Batch, number: int) -> bytes | None:
    """The output record of one request; None when it was never worked on."""
    fate, script = batch.fates[number], batch.script
    if fate in (Fate.EXPIRED, Fate.CANCELLED):
        return None
    given = mended(batch.lines.raw(number))
    model_input = given.get("modelInput", {})
    head = {"recordId": batch.lines.ids[number], "modelInput": model_input}
    if fate.answered:
        asked = asked_in(model_input, batch.model)
        output = response(asked, fate, script, converse=batch.details["converse"])
        return encoded({**head, "modelOutput": output})
    code, words = {
        Fate.ACCOUNT: (403, script.account_error),
        Fate.STATUS_400: (400, script.error_message or "The request is malformed."),
    }.get(fate, (500, script.error_message or "Internal server error"))
    return encoded({**head, "error": {"errorCode": code, "errorMessage": words}})


def foreign_line(batch: Batch, id: str) -> bytes:
    """A good record for an id that was never sent."""
    output = _converse(asked_of({}, batch.model), Fate.SUCCEEDED, batch.script)
    return encoded({"recordId": id, "modelInput": {}, "modelOutput": output})
