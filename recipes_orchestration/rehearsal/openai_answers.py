"""OpenAI's responses and result lines, as its SDK 3.57 types them."""

from __future__ import annotations

import base64
import struct
from typing import Any

from .answers import Asked, asked_of, encoded, tokens_in, tokens_of, vector
from .batch import Batch, mended
from .bodies import Lines
from .fates import Fate
from .openai_errors import error_object
from .script import Script
from .side import token

__all__ = [
    "CREDIT",
    "ROUTES",
    "ask",
    "asked_in",
    "error_line",
    "foreign_line",
    "output_line",
    "response",
]

CHAT, RESPONSES, EMBEDDINGS = "/v1/chat/completions", "/v1/responses", "/v1/embeddings"
ROUTES = (CHAT, RESPONSES, EMBEDDINGS)
CREDIT = (
    "You exceeded your current quota, please check your plan and billing details. For more "
    "information on this error, read the docs: "
    "https://platform.openai.com/docs/guides/error-codes/api-errors."
)
_EXPIRED = "This request could not be executed before the completion window expired."
_WRONG = "Here is the JSON you asked for."


def ask(lines: Lines, number: int) -> Asked:
    """What one line of a batch's file asks."""
    return asked_in(mended(lines.raw(number)).get("body"))


def asked_in(body: Any) -> Asked:
    """What the body of a call asks, whichever of the three routes it takes."""
    if not isinstance(body, dict):
        body = {}
    model = str(body.get("model", ""))
    chat: Any = body.get("response_format") or {}
    text: Any = body.get("text") or {}
    form = text.get("format") or {}
    if chat.get("type") == "json_schema":
        schema = (chat.get("json_schema") or {}).get("schema")
        return asked_of(body, model, schema, provider="openai")
    if form.get("type") == "json_schema":
        return asked_of(body, model, form.get("schema"), provider="openai")
    if "json_object" in (chat.get("type"), form.get("type")):
        schema = {"type": "object", "properties": {"answer": {}}}
        return asked_of(body, model, schema, provider="openai")
    return asked_of(body, model, provider="openai")


def response(route: str, asked: Asked, fate: Fate, script: Script) -> dict[str, Any]:
    """The body that answers a call."""
    if route == EMBEDDINGS:
        return _embeddings(asked, fate)
    return (_responses if route == RESPONSES else _chat)(asked, fate, script)


def _chat(asked: Asked, fate: Fate, script: Script) -> dict[str, Any]:
    text = asked.text(script)
    finish, content, refusal = "stop", text, None
    if fate is Fate.WRONG_SHAPE:
        content = _WRONG
    elif fate is Fate.REFUSED:
        content, refusal = None, "I'm sorry, I can't help with that."
    elif fate is Fate.TRUNCATED:
        content, finish = text[: len(text) // 2], "length"
    elif fate is Fate.FILTERED:
        content, finish = "", "content_filter"
    elif fate is Fate.THINKING:
        content, finish = "", "length"
    elif fate is Fate.EMPTY:
        content = ""
    message = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    output = tokens_of(text)
    return {
        "id": f"chatcmpl-{token()}",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": asked.input_tokens,
            "completion_tokens": output,
            "total_tokens": asked.input_tokens + output,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": output if fate is Fate.THINKING else 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _responses(asked: Asked, fate: Fate, script: Script) -> dict[str, Any]:
    text = asked.text(script)
    shown = {Fate.WRONG_SHAPE: _WRONG, Fate.TRUNCATED: text[: len(text) // 2]}.get(fate, text)
    part: dict[str, Any] = {"type": "output_text", "text": shown, "annotations": []}
    part["logprobs"] = []
    if fate is Fate.REFUSED:
        part = {"type": "refusal", "refusal": "I'm sorry, I can't help with that."}
    reason = {
        Fate.TRUNCATED: "max_output_tokens",
        Fate.THINKING: "max_output_tokens",
        Fate.FILTERED: "content_filter",
    }.get(fate)
    status = "incomplete" if reason else "completed"
    said = {"id": f"msg_{token()}", "type": "message", "status": status, "role": "assistant"}
    output: list[dict[str, Any]] = [{**said, "content": [part]}]
    if fate is Fate.THINKING:
        output = [{"id": f"rs_{token()}", "type": "reasoning", "summary": []}]
    elif fate in (Fate.EMPTY, Fate.FILTERED):
        output = []
    tokens = tokens_of(text)
    return {
        "id": f"resp_{token()}",
        "object": "response",
        "created_at": 1_800_000_000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "max_output_tokens": asked.body.get("max_output_tokens"),
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "usage": {
            "input_tokens": asked.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": tokens if not output else 0},
            "total_tokens": asked.input_tokens + tokens,
        },
    }


def _embeddings(asked: Asked, fate: Fate) -> dict[str, Any]:
    given = asked.body.get("input", "")
    texts = given if isinstance(given, list) else [given]
    size = 3 if fate is Fate.WRONG_SHAPE else int(asked.body.get("dimensions") or 256)
    packed = asked.body.get("encoding_format") == "base64"
    data: list[dict[str, Any]] = []
    for index, text in enumerate(texts if fate is not Fate.EMPTY else []):
        values: Any = vector(str(text), size)
        if packed:
            values = base64.b64encode(struct.pack(f"<{size}f", *values)).decode()
        data.append({"object": "embedding", "index": index, "embedding": values})
    tokens = tokens_in(given)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": asked.model, "usage": usage}


def output_line(batch: Batch, number: int) -> bytes | None:
    """The line of the output file for one request; None when it has none."""
    if not batch.fates[number].answered:
        return None
    asked = batch.ask(batch.lines, number)
    body = response(batch.details["endpoint"], asked, batch.fates[number], batch.script)
    return _line(batch.lines.ids[number], 200, body)


def error_line(batch: Batch, number: int) -> bytes | None:
    """The line of the error file for one request; None when it has none."""
    fate, id, script = batch.fates[number], batch.lines.ids[number], batch.script
    if fate is Fate.STATUS_400:
        return _line(id, 400, error_object(400, script.error_message))
    if fate is Fate.ACCOUNT:
        return _line(id, 429, error_object(429, script.account_error, "insufficient_quota"))
    if fate is Fate.ERRORED:
        words = script.error_message or "The server had an error while processing your request."
        return _line(id, None, None, {"code": "server_error", "message": words})
    if fate is Fate.EXPIRED:
        return _line(id, None, None, {"code": "batch_expired", "message": _EXPIRED})
    return None


def foreign_line(id: str, route: str, script: Script) -> bytes:
    """A good line for an id that was never sent."""
    return _line(id, 200, response(route, asked_of({}, "rehearsed"), Fate.SUCCEEDED, script))


def _line(id: str, status: int | None, body: Any, error: Any = None) -> bytes:
    reply = {"status_code": status, "request_id": token(32), "body": body}
    return encoded(
        {
            "id": f"batch_req_{token()}",
            "custom_id": id,
            "response": reply if status else None,
            "error": error,
        }
    )
