"""How a batch of Gemini stands, read from its operation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gemini_errors import error_words, is_account
from .json_values import as_dict, as_text, count, tidy
from .provider import BatchState, BatchStatus

__all__ = ["batch_status"]

ENDED = frozenset({"SUCCEEDED", "PARTIALLY_SUCCEEDED", "CANCELLED", "EXPIRED"})
OUTPUTS = ("responsesFile", "inlinedResponses", "inlinedEmbedContentResponses")


def batch_status(operation: Mapping[str, Any]) -> BatchStatus:
    """The state of a batch; one that failed and left responses has ended.

    The API says BATCH_STATE_… where the SDK says JOB_STATE_….
    """
    metadata = as_dict(operation.get("metadata"))
    error = as_dict(operation.get("error")) or as_dict(metadata.get("error"))
    told = as_text(metadata.get("state"))
    state = told.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    output = as_dict(metadata.get("output")) or as_dict(operation.get("response"))
    stats = as_dict(metadata.get("batchStats"))
    requests = _count(stats, "requestCount")
    answered = _count(stats, "successfulRequestCount", "failedRequestCount")
    words = [tidy(told) or ("done" if operation.get("done") is True else "no state")]
    if requests is not None and answered is not None:
        words.append(f"{answered} of {requests} answered")
    if error:
        words.append(error_words(error))
    return BatchStatus(
        _state(state, operation, error, any(output.get(key) for key in OUTPUTS)),
        ", ".join(words),
        account=bool(error) and is_account(error),
        answered=answered,
        requests=requests,
        expired=state == "EXPIRED",
    )


def _state(
    state: str, operation: Mapping[str, Any], error: Mapping[str, Any], output: bool
) -> BatchState:
    if state in ENDED:
        return BatchState.ENDED
    failed = state == "FAILED" or (operation.get("done") is True and bool(error))
    if failed:
        return BatchState.ENDED if output else BatchState.FAILED
    if operation.get("done") is True and output:
        return BatchState.ENDED
    return BatchState.RUNNING


def _count(stats: Mapping[str, Any], *keys: str) -> int | None:
    """The sum of counts, which the API writes as digits in strings; None when it says none."""
    said = [stats[key] for key in keys if key in stats]
    if not said:
        return None
    texts = [as_text(each) for each in said]
    return sum(
        int(text) if text.isdecimal() and len(text) < 20 else count(each)
        for text, each in zip(texts, said, strict=True)
    )
