"""The result lines of OpenAI's batches, and the words of its errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .json_values import as_dict, as_text, dump, one_line, parse, tidy
from .provider import Line, LineKind

__all__ = ["QUEUE_WAIT", "error_words", "is_account", "is_queue", "read_result", "result_of"]

QUEUE_WAIT = 600.0
"""In how many seconds the queue of a full account may have room again."""

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

# `BatchRequestOutputError.code` of OpenAI's API description (November 2026).
KINDS = {"batch_expired": LineKind.EXPIRED, "batch_cancelled": LineKind.CANCELLED}

ACCOUNT_CODES = frozenset(
    {"invalid_api_key", "insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    | {"account_deactivated", "access_terminated", "model_not_found", "token_limit_exceeded"}
    | {"invalid_organization", "organization_restricted", "ip_not_authorized"}
    | {"unsupported_country_region_territory", "budget_exceeded", "quota_exceeded"}
)
ACCOUNT_WORDS = re.compile(
    r"enqueued[ -]token|exceeded your current quota|billing|incorrect api key|"
    r"model .* does not exist|does not have access to model|account .* (?:not active|deactivated)",
    re.I,
)


def read_result(line: bytes) -> Line | None:
    """What a line of an output or error file says; None when it is broken or names no request.

    The line of a failed request has an `error`, or a `response` with the HTTP status that a plain
    call would have had and the error in its body.
    """
    entry = as_dict(parse(line))
    id = entry.get("custom_id")
    if not isinstance(id, str) or not ID.fullmatch(id):
        return None
    response, error = as_dict(entry.get("response")), as_dict(entry.get("error"))
    status, body = response.get("status_code"), as_dict(response.get("body"))
    if error:
        kind = KINDS.get(as_text(error.get("code")), LineKind.ERRORED)
        return Line(id, kind, words=error_words(error), account=is_account(error))
    if type(status) is not int:
        return None
    if 200 <= status < 300:
        return Line(id, LineKind.SUCCEEDED, body) if body else None
    inner = as_dict(body.get("error"))
    words = f"HTTP status {status}: {error_words(inner)}"
    account = status in (401, 403) or is_account(inner)
    return Line(id, LineKind.ERRORED, words=words, account=account)


def result_of(id: str, status: int, response: bytes) -> bytes:
    """A plain call's response as the line that a batch would have answered, without line end."""
    body = one_line(response)
    if not isinstance(parse(response), dict):
        words = f"the answer is no JSON: {tidy(repr(response[:200]))}"
        status = 502 if 200 <= status < 300 else status
        body = dump({"error": {"message": words, "type": "no_json", "code": None}})
    return b'{"id":"plain","custom_id":%b,"response":{"status_code":%d,"body":%b},"error":null}' % (
        dump(id),
        status,
        body,
    )


def error_words(error: Mapping[str, Any]) -> str:
    """The words of an error: its code, or its type, and message."""
    code = tidy(error.get("code")) or tidy(error.get("type"))
    return ": ".join(filter(None, [code, tidy(error.get("message"))])) or "an error without words"


def is_queue(error: Mapping[str, Any]) -> bool:
    """Whether too much of the account waits in the queue, which passes by itself."""
    code, message = as_text(error.get("code")), as_text(error.get("message")).lower()
    return code == "token_limit_exceeded" or "enqueued" in message


def is_account(error: Mapping[str, Any]) -> bool:
    """Whether an error blames the account: key, credit, limits, unknown model."""
    return (
        as_text(error.get("code")) in ACCOUNT_CODES
        or as_text(error.get("type")) in ACCOUNT_CODES
        or bool(ACCOUNT_WORDS.search(as_text(error.get("message"))))
    )
