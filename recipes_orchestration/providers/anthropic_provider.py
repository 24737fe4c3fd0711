"""Anthropic: Messages and Message Batches through its own SDK."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ..steps.ask import Answer
from .anthropic_answers import error_words, is_account, read_answer, read_result, result_of
from .anthropic_batches import AROUND, AnthropicBatches
from .anthropic_calls import batch_line, make_call
from .connected_provider import Notation
from .provider import BatchLimits, Call, Group
from .sdk_http import Manners
from .sdk_provider import SdkProvider

__all__ = ["AnthropicProvider"]

# "100,000 Message requests or 256 MB in size", the batch processing page (November 2026); which
# megabytes are meant it does not say, so the smaller ones.
LIMITS = BatchLimits(max_requests=100_000, max_bytes=256_000_000, overhead=AROUND)
RATE_WAIT, QUEUE_WAIT = 60.0, 600.0


def _wait(status: int, words: str) -> float | None:
    """In how many seconds a limit may have room again; None for what does not pass by itself."""
    if status != 429 or "spend" in words or "usage limit" in words:
        return None
    return QUEUE_WAIT if "queue" in words else RATE_WAIT


class AnthropicProvider(SdkProvider):
    """The provider `anthropic`; its key is ANTHROPIC_API_KEY."""

    name = "anthropic"
    limits = LIMITS
    notation = Notation(make_call, batch_line, read_result, result_of)
    variable = "ANTHROPIC_API_KEY"
    manners = Manners("Anthropic", error_words, is_account, _wait)

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:  # noqa: ARG002
        """What a response says; see `Provider`."""
        return read_answer(response)

    def submit(
        self,
        name: str,  # noqa: ARG002
        group: Group,
        file: Path,
        ids: Collection[str],  # noqa: ARG002
    ) -> str:
        """Creates a batch. Anthropic keeps no name with it; see `Provider`."""
        return self._batches().create(group, file)

    def find(
        self,
        name: str,  # noqa: ARG002
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> str | None:
        """The batch of these requests; see `Provider`."""
        return self._batches().find(ids, since, known)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        return self._batches().plain(call)

    def _batches(self) -> AnthropicBatches:
        return AnthropicBatches(self._connected())
