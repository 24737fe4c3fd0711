"""What Anthropic answered: result lines of a batch, messages, and the words of errors. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import StepError
from ..steps.ask import Answer, Stop, Usage
from .anthropic_calls import ANSWER_TOOL, VALUE_TOOL
from .json_values import as_dict, as_list, as_text, count, dump, one_line, parse, tidy
from .provider import Line, LineKind

__all__ = ["error_words", "is_account", "read_answer", "read_result", "result_of"]

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

STOPS = {
    "end_turn": Stop.COMPLETE,
    "stop_sequence": Stop.COMPLETE,
    "max_tokens": Stop.TRUNCATED,
    "model_context_window_exceeded": Stop.TRUNCATED,
    "refusal": Stop.REFUSED,
}
KINDS = {
    "errored": LineKind.ERRORED,
    "expired": LineKind.EXPIRED,
    "canceled": LineKind.CANCELLED,
}
UNANSWERED = {
    LineKind.EXPIRED: "expired: the batch ended before the request was worked on",
    LineKind.CANCELLED: "canceled: the batch was cancelled before the request was worked on",
}

# anthropic 2.14, types/shared: an error's `type`, and the `error_code` in its `details`.
ACCOUNT_TYPES = frozenset({"authentication_error", "billing_error", "permission_error"})
ACCOUNT_CODES = re.compile("spend_limit|billing|organization|workspace|cmek|claude_code_key")
# A missing credit is an `invalid_request_error`, so that only its words tell it.
ACCOUNT_WORDS = re.compile(
    r"credit balance|purchase credits|spend(?:ing)? limit|usage limits|billing|api key|"
    r"your organization",
    re.I,
)


def read_result(line: bytes) -> Line | None:
    """What a line of a batch's results says; None when it is broken or names no request."""
    entry = as_dict(parse(line))
    id, result = entry.get("custom_id"), as_dict(entry.get("result"))
    if not isinstance(id, str) or not ID.fullmatch(id):
        return None
    if result.get("type") == "succeeded":
        message = as_dict(result.get("message"))
        return Line(id, LineKind.SUCCEEDED, message) if message else None
    kind = KINDS.get(as_text(result.get("type")))
    if kind is None:
        return None
    if kind is not LineKind.ERRORED:
        return Line(id, kind, words=UNANSWERED[kind])
    body = as_dict(result.get("error"))
    return Line(id, kind, words=error_words(body), account=is_account(body))


def result_of(id: str, status: int, response: bytes) -> bytes:
    """A plain call's response as the line that a batch would have answered, without line end."""
    body = parse(response)
    if not isinstance(body, dict):
        words = f"HTTP status {status}, and the answer is no JSON: {response[:200]!r}"
        return _result(id, "errored", "error", _error(tidy(words)))
    if 200 <= status < 300:
        return _result(id, "succeeded", "message", one_line(response))
    if not as_dict(as_dict(body).get("error")):
        return _result(id, "errored", "error", _error(f"HTTP status {status}"))
    return _result(id, "errored", "error", one_line(response))


def read_answer(message: Mapping[str, Any]) -> Answer:
    """What a message says, without its thinking; raises `StepError` when it is no message."""
    blocks = message.get("content")
    if not isinstance(blocks, list):
        raise StepError("Anthropic's answer has no content; look at its line in the library.")
    text = ""
    for block in map(as_dict, as_list(blocks)):
        if block.get("type") == "text":
            text += as_text(block.get("text"))
    called = _called(as_list(blocks))
    reason = as_text(message.get("stop_reason"))
    stop = STOPS.get(reason, Stop.OTHER)
    if called is not None:
        text = called
        stop = Stop.COMPLETE if reason == "tool_use" else stop
    if stop is Stop.COMPLETE and not text.strip():
        stop = Stop.EMPTY
    return Answer(
        stop=stop,
        usage=_usage(as_dict(message.get("usage"))),
        text=text,
        words="" if stop is Stop.COMPLETE else _stop_words(message, reason),
        model=as_text(message.get("model")) or None,
    )


def error_words(body: Mapping[str, Any]) -> str:
    """The words of an error response: its type and message."""
    error = as_dict(body.get("error"))
    kind, message = tidy(error.get("type")), tidy(error.get("message"))
    return ": ".join(filter(None, [kind, message])) or "an error without words"


def is_account(body: Mapping[str, Any]) -> bool:
    """Whether an error response blames the account: key, credit, permission, unknown model."""
    error = as_dict(body.get("error"))
    kind, message = as_text(error.get("type")), as_text(error.get("message"))
    code = as_text(as_dict(error.get("details")).get("error_code"))
    return (
        kind in ACCOUNT_TYPES
        or bool(ACCOUNT_CODES.search(code))
        or (kind == "not_found_error" and "model" in message.lower())
        or (kind == "invalid_request_error" and bool(ACCOUNT_WORDS.search(message)))
    )


def _called(blocks: list[Any]) -> str | None:
    """The answer that was given as the input of our tool, as JSON; None when there is none."""
    for block in map(as_dict, blocks):
        if block.get("type") == "tool_use" and block.get("name") in (ANSWER_TOOL, VALUE_TOOL):
            given = block.get("input")
            if block["name"] == VALUE_TOOL:
                given = as_dict(given).get("value")
            return as_text(json.dumps(given, ensure_ascii=False))
    return None


def _usage(usage: Mapping[str, Any]) -> Usage:
    """`input_tokens` counts only what lies behind the last cache mark."""
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Usage(
        tokens_in=count(usage.get("input_tokens")) + cached + written,
        tokens_out=count(usage.get("output_tokens")),
        tokens_cached=cached,
        tokens_cache_write=written,
    )


def _stop_words(message: Mapping[str, Any], reason: str) -> str:
    details = as_dict(message.get("stop_details"))
    more = [tidy(details.get("category")), tidy(details.get("explanation"))]
    return ": ".join(filter(None, [f"stop_reason {tidy(reason) or 'missing'}", *more]))


def _result(id: str, kind: str, field: str, body: bytes) -> bytes:
    return b'{"custom_id":%b,"result":{"type":"%b","%b":%b}}' % (
        dump(id),
        kind.encode(),
        field.encode(),
        body,
    )


def _error(words: str) -> bytes:
    return dump({"type": "error", "error": {"type": "api_error", "message": words}})
