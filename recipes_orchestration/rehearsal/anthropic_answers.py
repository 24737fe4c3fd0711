"""Anthropic's messages, errors and result lines, as its SDK 2.14 types them."""

from __future__ import annotations

from typing import Any

from .answers import Asked, asked_of, encoded, tokens_of
from .batch import Batch, mended
from .bodies import Lines
from .fates import Fate
from .script import Script
from .side import token

__all__ = ["FILTERED", "ask", "asked_in", "error_object", "foreign_line", "message", "result"]

FILTERED = "Output blocked by content filtering policy"
_KINDS = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use this resource."),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}


def ask(lines: Lines, number: int) -> Asked:
    """What one request of a batch asks."""
    return asked_in(lines.raw(number))


def asked_in(raw: bytes) -> Asked:
    """What the body of a message asks."""
    body = mended(raw)
    model = str(body.get("model", ""))
    config: Any = body.get("output_config") or {}
    form = config.get("format") or body.get("output_format") or {}
    if form.get("type") == "json_schema":
        return asked_of(body, model, form.get("schema"), provider="anthropic")
    choice: Any = body.get("tool_choice") or {}
    for tool in body.get("tools") or []:
        if choice.get("type") == "any" or choice.get("name") == tool.get("name"):
            schema, name = tool.get("input_schema"), str(tool.get("name"))
            return asked_of(body, model, schema, name, provider="anthropic")
    return asked_of(body, model, provider="anthropic")


def result(batch: Batch, number: int) -> bytes:
    """The result line of one request, without its line end."""
    id = batch.lines.ids[number]
    fate = batch.fates[number] if batch.fates else Fate.ERRORED
    if fate is Fate.EXPIRED:
        return _line(id, {"type": "expired"})
    if fate is Fate.CANCELLED:
        return _line(id, {"type": "canceled"})
    script = batch.script
    if fate is Fate.ACCOUNT:
        return _errored(id, 400, script.account_error)
    if fate is Fate.STATUS_400:
        return _errored(id, 400, script.error_message)
    if fate is Fate.ERRORED:
        return _errored(id, 500, script.error_message)
    if fate is Fate.FILTERED:
        return _errored(id, 400, FILTERED)
    asked = batch.ask(batch.lines, number)
    if "unknown" in asked.model:
        return _errored(id, 404, f"model: {asked.model}")
    return _line(id, {"type": "succeeded", "message": message(asked, fate, script)})


def _line(id: str, result: dict[str, Any]) -> bytes:
    return encoded({"custom_id": id, "result": result})


def _errored(id: str, status: int, words: str) -> bytes:
    return _line(id, {"type": "errored", "error": error_object(status, words)})


def message(asked: Asked, fate: Fate, script: Script) -> dict[str, Any]:
    """The message that answers."""
    text = asked.text(script)
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    stop = "end_turn"
    if fate is Fate.WRONG_SHAPE:
        content = [{"type": "text", "text": "Here is the JSON you asked for."}]
    elif fate is Fate.REFUSED:
        content, stop = [], "refusal"
    elif fate is Fate.TRUNCATED:
        content, stop = [{"type": "text", "text": text[: len(text) // 2]}], "max_tokens"
    elif fate is Fate.THINKING:
        content = [{"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"}]
        stop = "max_tokens"
    elif fate is Fate.EMPTY:
        content = []
    elif asked.tool:
        use = {"type": "tool_use", "id": f"toolu_{token()}", "name": asked.tool}
        content, stop = [{**use, "input": asked.value(script)}], "tool_use"
    return {
        "id": f"msg_{token()}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": asked.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens_of(text),
            "service_tier": "standard",
        },
    }


def error_object(status: int, words: str = "") -> dict[str, Any]:
    """The JSON of an error, in the provider's words unless others are given."""
    kind, usual = _KINDS.get(status, ("api_error", "Internal server error"))
    error = {"type": kind, "message": words or usual}
    return {"type": "error", "error": error, "request_id": f"req_{token()}"}


def foreign_line(id: str, script: Script) -> bytes:
    """A good line for an id that was never sent."""
    answer = message(asked_of({}, "rehearsed"), Fate.SUCCEEDED, script)
    return _line(id, {"type": "succeeded", "message": answer})
