"""What Gemini answered: lines of a responses file, and generated content or vectors. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import StepError
from ..steps.ask import Answer, Stop, Usage
from .gemini_errors import error_words, is_account
from .json_values import as_dict, as_list, as_text, count, dump, one_line, parse, tidy
from .provider import Line, LineKind
from .vectors import vector_of

__all__ = ["read_generated", "read_result", "read_vector", "result_of"]

# google-genai 3.6, types.FinishReason.
TRUNCATED = frozenset({"MAX_TOKENS", "CONTINUATION"})
FILTERED = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}
    | {"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR", "ESCALATION"}
)
# CANCELLED, as an RPC code and as Google's HTTP status for it.
CANCELLED = frozenset({1, 499})


def read_result(line: bytes) -> Line | None:
    """What a line of the responses file says; None when it is broken or names no request."""
    entry = as_dict(parse(line))
    id, response = entry.get("key"), as_dict(entry.get("response"))
    if not isinstance(id, str) or not id:
        return None
    # The guide calls it a status object; where a response is due, it may hold the error itself.
    error = as_dict(entry.get("error")) or as_dict(entry.get("status"))
    if not error and "candidates" not in response:
        error = as_dict(response.get("error"))
    if error:
        kind = LineKind.CANCELLED if error.get("code") in CANCELLED else LineKind.ERRORED
        return Line(id, kind, words=error_words(error), account=is_account(error))
    return Line(id, LineKind.SUCCEEDED, response) if response else None


def result_of(id: str, status: int, response: bytes) -> bytes:
    """A plain call's response as the line that a batch would have answered, without line end."""
    body = parse(response)
    if isinstance(body, dict) and 200 <= status < 300:
        return b'{"key":%b,"response":%b}' % (dump(id), one_line(response))
    error = as_dict(as_dict(body).get("error"))
    if not error:
        words = f"HTTP status {status}, and the answer is no JSON: {response[:200]!r}"
        error = {"code": status, "message": tidy(words)}
    return b'{"key":%b,"error":%b}' % (dump(id), dump(error))


def read_vector(response: Mapping[str, Any]) -> Answer:
    """The vector of an embedContent response; raises `StepError` when it has none."""
    vector = vector_of(as_dict(response.get("embedding")).get("values"))
    if vector is None:
        raise StepError(
            "Gemini's answer has no vector of numbers. Check that the step's model embeds text, "
            "and look at the answer's line in the library."
        )
    counted = as_dict(response.get("usageMetadata"))
    tokens = _count(counted.get("promptTokenCount")) or _count(response.get("tokenCount"))
    stop, words = (Stop.COMPLETE, "") if vector else (Stop.EMPTY, "no vector")
    return Answer(stop, Usage(tokens_in=tokens), vector=vector or None, words=words)


def read_generated(response: Mapping[str, Any]) -> Answer:
    """What the first candidate says, without its thoughts, or why there is none."""
    usage = _usage(as_dict(response.get("usageMetadata")))
    model = as_text(response.get("modelVersion")) or None
    candidates = response.get("candidates", [])
    feedback = as_dict(response.get("promptFeedback"))
    if not isinstance(candidates, list) or not (candidates or usage != Usage() or feedback):
        raise StepError(
            "Gemini's answer has no candidates, no reason and no usage; "
            "look at its line in the library."
        )
    if not candidates:
        stop, words = _blocked(feedback)
        return Answer(stop, usage, words=words, model=model)
    first = as_dict(as_list(candidates)[0])
    text = _text(as_dict(first.get("content")))
    stop, words = _stop(first, text)
    return Answer(stop, usage, text=text, words=words, model=model)


def _blocked(feedback: Mapping[str, Any]) -> tuple[Stop, str]:
    reason = as_text(feedback.get("blockReason"))
    if not reason:
        return Stop.EMPTY, "no candidates"
    words = [f"prompt blocked, {tidy(reason)}", tidy(feedback.get("blockReasonMessage"))]
    return Stop.FILTERED, ": ".join(filter(None, words))


def _text(content: Mapping[str, Any]) -> str:
    parts = [as_dict(part) for part in as_list(content.get("parts"))]
    return "".join(as_text(part.get("text")) for part in parts if part.get("thought") is not True)


def _stop(candidate: Mapping[str, Any], text: str) -> tuple[Stop, str]:
    reason = as_text(candidate.get("finishReason"))
    if reason == "STOP" and text.strip():
        return Stop.COMPLETE, ""
    words = [f"finishReason {tidy(reason) or 'missing'}", tidy(candidate.get("finishMessage"))]
    stop = Stop.OTHER
    if reason == "STOP":
        stop = Stop.EMPTY
    elif reason in TRUNCATED:
        stop = Stop.TRUNCATED
    elif reason in FILTERED:
        stop = Stop.FILTERED
    return stop, ": ".join(filter(None, words))


def _usage(counted: Mapping[str, Any]) -> Usage:
    """`promptTokenCount` counts cached tokens too; thoughts are billed as output."""
    return Usage(
        tokens_in=_count(counted.get("promptTokenCount"))
        + _count(counted.get("toolUsePromptTokenCount")),
        tokens_out=_count(counted.get("candidatesTokenCount"))
        + _count(counted.get("thoughtsTokenCount")),
        tokens_cached=_count(counted.get("cachedContentTokenCount")),
    )


def _count(value: Any) -> int:
    """A count; Google's JSON writes 64-bit ones as digits in a string."""
    text = as_text(value)
    return int(text) if text.isdecimal() and len(text) < 20 else count(value)
