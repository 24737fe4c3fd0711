"""Gemini's responses and result lines, as its SDK 3.6 types them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .answers import Asked, asked_of, encoded, tokens_in, tokens_of, vector
from .batch import Batch, mended
from .bodies import Lines
from .fates import Fate
from .script import Script
from .side import token

__all__ = ["ask", "asked_in", "content_response", "embedding", "foreign_line", "result"]


def ask(lines: Lines, number: int) -> Asked:
    """What one request of a batch asks; inline or a line of a file."""
    return asked_in(mended(lines.raw(number)).get("request"))


def asked_in(body: Any, model: str = "") -> Asked:
    """What the body of a call asks."""
    if not isinstance(body, dict):
        body = {}
    config = _either(body, "generationConfig", "generation_config") or {}
    schema = (
        _either(config, "responseJsonSchema", "response_json_schema")
        or _either(config, "responseSchema", "response_schema")
        or None
    )
    name = model or str(body.get("model", ""))
    return asked_of(body, name, schema, provider="gemini")


def _either(body: Mapping[str, Any], camel: str, snake: str) -> Any:
    return body.get(camel, body.get(snake))


def content_response(asked: Asked, fate: Fate, script: Script) -> dict[str, Any]:
    """The body that answers generateContent."""
    text = asked.text(script)
    output = tokens_of(text)
    thoughts = output if fate is Fate.THINKING else 0
    usage = {
        "promptTokenCount": asked.input_tokens,
        "candidatesTokenCount": output - thoughts,
        "totalTokenCount": asked.input_tokens + output,
        "cachedContentTokenCount": 0,
        "thoughtsTokenCount": thoughts,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": asked.input_tokens}],
    }
    response: dict[str, Any] = {
        "usageMetadata": usage,
        "modelVersion": asked.model.removeprefix("models/"),
        "responseId": token(),
    }
    if fate is Fate.REFUSED:
        response["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        usage.update(candidatesTokenCount=0, totalTokenCount=asked.input_tokens)
        return response
    response["candidates"] = [{**_candidate(text, fate), "index": 0}]
    return response


def _candidate(text: str, fate: Fate) -> dict[str, Any]:
    if fate is Fate.FILTERED:
        return {"finishReason": "SAFETY"}
    parts: list[dict[str, Any]] = [{"text": text}]
    finish = "STOP"
    if fate is Fate.WRONG_SHAPE:
        parts = [{"text": "Here is the JSON you asked for."}]
    elif fate is Fate.TRUNCATED:
        parts, finish = [{"text": text[: len(text) // 2]}], "MAX_TOKENS"
    elif fate is Fate.THINKING:
        parts, finish = [{"text": "Let me think.", "thought": True}], "MAX_TOKENS"
    content: dict[str, Any] = {"parts": parts, "role": "model"}
    if fate is Fate.EMPTY:
        del content["parts"]
    return {"content": content, "finishReason": finish}


def embedding(request: Any, fate: Fate = Fate.SUCCEEDED) -> tuple[dict[str, Any], int]:
    """The embedding of one content and the tokens of it."""
    request = request if isinstance(request, dict) else {}
    content = request.get("content") or {}
    parts = content.get("parts") if isinstance(content, dict) else None
    text = "\n".join(str(part.get("text", "")) for part in parts or [] if isinstance(part, dict))
    size = int(_either(request, "outputDimensionality", "output_dimensionality") or 256)
    if fate in (Fate.EMPTY, Fate.WRONG_SHAPE):
        size = 0 if fate is Fate.EMPTY else 3
    return {"values": vector(text, size)}, tokens_in(text)


def result(batch: Batch, number: int) -> bytes | None:
    """The result of one request, a line of a file or inline; None when there is none."""
    fate, id, script = batch.fates[number], batch.lines.ids[number], batch.script
    if fate in (Fate.EXPIRED, Fate.CANCELLED):
        return None
    if fate is Fate.ERRORED:
        return _line(batch, id, error=(13, script.error_message or "Internal error encountered."))
    if fate is Fate.ACCOUNT:
        return _line(batch, id, error=(8, script.account_error))
    if fate is Fate.STATUS_400:
        words = script.error_message or "Request contains an invalid argument."
        return _line(batch, id, error=(3, words))
    asked = asked_in(mended(batch.lines.raw(number)).get("request"), batch.model)
    if batch.details["embeds"]:
        values, tokens = embedding(asked.body, fate)
        return _line(batch, id, response={"embedding": values, "tokenCount": tokens})
    named = Asked(asked.digest, batch.model, asked.input_tokens, asked.schema)
    return _line(batch, id, response=content_response(named, fate, script))


def foreign_line(batch: Batch, id: str) -> bytes:
    """A good line for an id that was never sent."""
    answer = content_response(asked_of({}, batch.model), Fate.SUCCEEDED, batch.script)
    return _line(batch, id, response=answer)


def _line(batch: Batch, id: str, *, response: Any = None, error: Any = None) -> bytes:
    if error is None:
        said = {"response": response}
    else:
        said = {"error": {"code": error[0], "message": error[1]}}
    return encoded(
        {"metadata": {"key": id}, **said} if batch.details["inline"] else {"key": id, **said}
    )
