"""What OpenAI answered: chat completions, responses and embeddings in one shape. Pure."""

from __future__ import annotations

import base64
import binascii
import struct
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import StepError
from ..steps.ask import Answer, Stop, Usage
from .json_values import as_dict, as_list, as_text, count, tidy
from .openai_calls import CHAT, EMBEDDINGS, RESPONSES

__all__ = ["read_answer"]

LARGEST = sys.float_info.max

FINISHES = {
    "stop": Stop.COMPLETE,
    "length": Stop.TRUNCATED,
    "content_filter": Stop.FILTERED,
}
INCOMPLETE = {
    "max_output_tokens": Stop.TRUNCATED,
    "content_filter": Stop.FILTERED,
}


def read_answer(route: str, body: Mapping[str, Any]) -> Answer:
    """What the body of a response says; raises `StepError` when it has another shape."""
    reader = _READERS.get(route) or _READERS.get(route.partition("?")[0])
    if reader is None:
        path, known = route.partition("?")[0], ", ".join(_READERS)
        raise StepError(f"OpenAI's {path} is not read by this program, only {known} are.")
    return reader(body)


def _chat(body: Mapping[str, Any]) -> Answer:
    choices = body.get("choices")
    if not isinstance(choices, list):
        raise _shapeless("choices")
    choice = as_dict(as_list(choices)[0]) if choices else {}
    message = as_dict(choice.get("message"))
    reason = as_text(choice.get("finish_reason"))
    text, refusal = as_text(message.get("content")), as_text(message.get("refusal"))
    stop, words = FINISHES.get(reason, Stop.OTHER), ""
    if not choices:
        stop, words = Stop.EMPTY, "no choices"
    elif refusal:
        stop, words = Stop.REFUSED, tidy(refusal)
    elif stop is Stop.COMPLETE and not text.strip():
        stop = Stop.EMPTY
    if stop is not Stop.COMPLETE and not words:
        words = f"finish_reason {tidy(reason) or 'missing'}"
    return _answer(stop, words, text, body, "prompt_tokens", "completion_tokens")


def _response(body: Mapping[str, Any]) -> Answer:
    output = body.get("output")
    if not isinstance(output, list):
        raise _shapeless("output")
    text = refusal = ""
    called = False
    for item in map(as_dict, as_list(output)):
        called = called or as_text(item.get("type")).endswith("_call")
        if item.get("type") == "message":
            for part in map(as_dict, as_list(item.get("content"))):
                if part.get("type") == "output_text":
                    text += as_text(part.get("text"))
                if part.get("type") == "refusal":
                    refusal += as_text(part.get("refusal"))
    stop, words = _response_stop(body)
    if refusal:
        stop, words = Stop.REFUSED, tidy(refusal)
    elif stop is Stop.COMPLETE and not text.strip():
        stop = Stop.OTHER if called else Stop.EMPTY
    return _answer(stop, words, text, body, "input_tokens", "output_tokens")


def _response_stop(body: Mapping[str, Any]) -> tuple[Stop, str]:
    status = as_text(body.get("status"))
    words = f"status {tidy(status) or 'missing'}"
    if status == "completed":
        return Stop.COMPLETE, words
    reason = as_text(as_dict(body.get("incomplete_details")).get("reason"))
    message = tidy(as_dict(body.get("error")).get("message"))
    words = ": ".join(filter(None, [words, tidy(reason), message]))
    return INCOMPLETE.get(reason, Stop.OTHER), words


def _embedding(body: Mapping[str, Any]) -> Answer:
    data = body.get("data")
    if not isinstance(data, list) or len(as_list(data)) > 1:
        raise _shapeless("one vector in data")
    vector = _vector(as_dict(as_list(data)[0]).get("embedding")) if data else ()
    return Answer(
        stop=Stop.COMPLETE if vector else Stop.EMPTY,
        usage=_usage(body, "prompt_tokens", "completion_tokens"),
        vector=vector or None,
        words="" if vector else "no vector",
        model=as_text(body.get("model")) or None,
    )


def _vector(value: Any) -> tuple[float, ...]:
    """Numbers, or little-endian 32-bit floats in base64, which the SDK asks for by itself."""
    numbers = as_list(value)
    if isinstance(value, str):
        try:
            packed = base64.b64decode(value, validate=True)
            numbers = list(struct.unpack(f"<{len(packed) // 4}f", packed))
        except (binascii.Error, ValueError, struct.error):
            raise _shapeless("a vector in base64") from None
    if not all(type(each) in (int, float) and abs(each) <= LARGEST for each in numbers):
        raise _shapeless("a vector of numbers")
    return tuple(float(each) for each in numbers)


def _answer(
    stop: Stop, words: str, text: str, body: Mapping[str, Any], tokens_in: str, tokens_out: str
) -> Answer:
    usage = _usage(body, tokens_in, tokens_out)
    words = "" if stop is Stop.COMPLETE else words
    # By place, in half the time that names take: there is one for each page.
    return Answer(stop, usage, text, None, words, as_text(body.get("model")) or None)


def _usage(body: Mapping[str, Any], tokens_in: str, tokens_out: str) -> Usage:
    """The whole question is counted in `tokens_in`, cached parts too; so is reasoning in out."""
    usage = as_dict(body.get("usage"))
    details = as_dict(usage.get(f"{tokens_in}_details"))
    return Usage(
        count(usage.get(tokens_in)),
        count(usage.get(tokens_out)),
        count(details.get("cached_tokens")),
        count(details.get("cache_write_tokens")),
    )


_READERS = {CHAT: _chat, RESPONSES: _response, EMBEDDINGS: _embedding}


def _shapeless(expected: str) -> StepError:
    return StepError(f"OpenAI's answer has not {expected}; look at its line in the library.")
