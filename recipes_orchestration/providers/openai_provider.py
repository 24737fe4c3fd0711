"""OpenAI: chat, responses and embeddings, and the Batch API, through its own SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..steps.ask import Answer
from .connected_provider import NamingProvider, Notation
from .json_values import as_dict
from .openai_answers import read_answer
from .openai_batches import OpenAIBatches
from .openai_calls import batch_line, make_call
from .openai_lines import QUEUE_WAIT, error_words, is_account, read_result, result_of
from .provider import BatchLimits, Call, Group
from .sdk_http import Manners, SdkHttp
from .sdk_provider import SdkProvider

__all__ = ["OpenAIProvider"]

# "Up to 50,000 requests, and can be up to 200 MB in size", the API description of openai 3.57;
# which megabytes are meant it does not say, so the smaller ones.
LIMITS = BatchLimits(max_requests=50_000, max_bytes=200_000_000)
RATE_WAIT = 60.0


def _words(body: Mapping[str, Any]) -> str:
    return error_words(as_dict(body.get("error")))


def _account(body: Mapping[str, Any]) -> bool:
    return is_account(as_dict(body.get("error")))


def _wait(status: int, words: str) -> float | None:
    """In how many seconds a limit may have room again; None for what does not pass by itself."""
    if "enqueued" in words.lower() or "token_limit_exceeded" in words:
        return QUEUE_WAIT
    return RATE_WAIT if status == 429 and not ("quota" in words or "billing" in words) else None


class OpenAIProvider(SdkProvider, NamingProvider[SdkHttp]):
    """The provider `openai`; its key is OPENAI_API_KEY."""

    name = "openai"
    limits = LIMITS
    notation = Notation(make_call, batch_line, read_result, result_of)
    variable = "OPENAI_API_KEY"
    manners = Manners("OpenAI", _words, _account, _wait)

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:
        """What a response says; see `Provider`."""
        return read_answer(group.route, response)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        return self._batches().plain(call)

    def _batches(self) -> OpenAIBatches:
        return OpenAIBatches(self._connected())
