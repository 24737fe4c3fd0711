"""What Bedrock answered: records of an output file, Converse messages and vectors. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import StepError
from ..steps.ask import Answer, Stop, Usage
from . import anthropic_answers
from .bedrock_errors import error_words, is_account
from .json_values import as_dict, as_list, as_text, count, dump, one_line, parse, tidy
from .provider import Line, LineKind
from .vectors import vector_of

__all__ = ["read_conversed", "read_invoked", "read_result", "result_of", "without_input"]

STOPS = {
    "end_turn": Stop.COMPLETE,
    "stop_sequence": Stop.COMPLETE,
    "max_tokens": Stop.TRUNCATED,
    "model_context_window_exceeded": Stop.TRUNCATED,
    "guardrail_intervened": Stop.FILTERED,
    "content_filtered": Stop.FILTERED,
    "refusal": Stop.REFUSED,
}


def read_result(line: bytes) -> Line | None:
    """What a record of an output file says; None when it is broken or names no request."""
    entry = as_dict(parse(line))
    id, output = entry.get("recordId"), as_dict(entry.get("modelOutput"))
    if not isinstance(id, str) or not id:
        return None
    if "error" in entry and (error := as_dict(entry["error"])):
        words, account = error_words(error), is_account(error)
        return Line(id, LineKind.ERRORED, words=words, account=account)
    return Line(id, LineKind.SUCCEEDED, output) if output else None


def without_input(line: bytes) -> bytes:
    """The record without the request that Bedrock repeats in it, pictures and all.

    A record that cannot be read stays as it is.
    """
    entry = parse(line)
    if not isinstance(entry, dict) or "modelInput" not in entry:
        return line
    del entry["modelInput"]
    return dump(entry)


def result_of(id: str, status: int, response: bytes) -> bytes:
    """A plain call's response as the record that a batch would have answered, without line end."""
    body = parse(response)
    if isinstance(body, dict) and 200 <= status < 300:
        return b'{"recordId":%b,"modelOutput":%b}' % (dump(id), one_line(response))
    answer = as_dict(body)
    words = as_text(answer.get("message")) or as_text(answer.get("Message"))
    if not words:
        words = f"HTTP status {status}, and the answer is no JSON: {response[:200]!r}"
    error = {"errorCode": status, "errorMessage": tidy(words)}
    return b'{"recordId":%b,"error":%b}' % (dump(id), dump(error))


def read_conversed(response: Mapping[str, Any]) -> Answer:
    """What a Converse response says, without its reasoning; raises `StepError` when it is none."""
    message = as_dict(as_dict(response.get("output")).get("message"))
    blocks = message.get("content")
    reason = as_text(response.get("stopReason"))
    if not isinstance(blocks, list) and not reason:
        raise StepError("Bedrock's answer has no message; look at its line in the library.")
    text = "".join([as_text(as_dict(block).get("text")) for block in as_list(blocks)])
    stop = STOPS.get(reason, Stop.OTHER)
    if stop is Stop.COMPLETE and not text.strip():
        stop = Stop.EMPTY
    words = "" if stop is Stop.COMPLETE else f"stopReason {tidy(reason) or 'missing'}"
    return Answer(stop, _usage(as_dict(response.get("usage"))), text, None, words)


def read_invoked(response: Mapping[str, Any]) -> Answer:
    """What InvokeModel answered: a vector of Titan or Cohere, or a message of Anthropic's.

    Cohere's bodies count no tokens, so that such an answer's usage is none.
    """
    if response.get("type") == "message":
        return anthropic_answers.read_answer(response)
    given = response.get("embedding")
    if given is None:
        many = response.get("embeddings")
        of_floats = as_dict(many).get("float") if isinstance(many, dict) else many
        given = next(iter(as_list(of_floats)), None)
    vector = vector_of(given)
    if vector is None:
        raise StepError(
            "Bedrock's answer has no vector of numbers. Check that the step's model embeds text, "
            "and look at the answer's line in the library."
        )
    usage = Usage(tokens_in=count(response.get("inputTextTokenCount")))
    stop, words = (Stop.COMPLETE, "") if vector else (Stop.EMPTY, "no vector")
    return Answer(stop, usage, vector=vector or None, words=words)


def _usage(usage: Mapping[str, Any]) -> Usage:
    """`inputTokens` leaves out what was read from a cache or written to one.

    https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html (November 2026)
    """
    cached = count(usage.get("cacheReadInputTokens"))
    written = count(usage.get("cacheWriteInputTokens"))
    tokens_in = count(usage.get("inputTokens")) + cached + written
    return Usage(tokens_in, count(usage.get("outputTokens")), cached, written)
