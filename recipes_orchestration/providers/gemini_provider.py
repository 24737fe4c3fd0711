"""Gemini: generated content, vectors, and batch mode, through google-genai's developer API."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from ..steps.ask import Answer, Ask, EmbedAsk
from .gemini_answers import read_generated, read_result, read_vector, result_of
from .gemini_calls import batch_line, embeds, make_call
from .provider import BatchLimits, BatchStatus, Call, Group, Line

if TYPE_CHECKING:
    from .gemini_batches import GeminiBatches
    from .gemini_sdk import GeminiSdk

__all__ = ["GeminiProvider"]

# "The maximum allowed file size is 2GB", the Batch API guide (November 2026), in the smaller
# gigabytes. How many requests it may hold is documented nowhere; so many are ours.
LIMITS = BatchLimits(max_requests=200_000, max_bytes=2_000_000_000)


class GeminiProvider:
    """Google's project of one key. `timeout` is in seconds, for one request.

    Without `api_key` and `base_url` the key is GOOGLE_API_KEY or GEMINI_API_KEY, as in the SDK, and
    the address GOOGLE_GEMINI_BASE_URL. The SDK is loaded when the first request is made.
    """

    name = "gemini"
    limits = LIMITS

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 600.0
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout
        self._lock = threading.Lock()
        self._sdk: GeminiSdk | None = None

    def call(self, ask: Ask | EmbedAsk, model: str) -> Call:
        """The call that asks it; see `Provider`."""
        return make_call(ask, model)

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:
        """What a response says; see `Provider`."""
        return read_vector(response) if embeds(group) else read_generated(response)

    def line(self, id: str, call: Call) -> bytes:
        """One request of a batch's file; see `Provider`."""
        return batch_line(id, call)

    def read_line(self, line: bytes) -> Line | None:
        """What a result line says; see `Provider`."""
        return read_result(line)

    def result_line(self, id: str, status: int, response: bytes) -> bytes:
        """A plain call's response as a result line; see `Provider`."""
        return result_of(id, status, response)

    def submit(self, name: str, group: Group, file: Path, ids: Collection[str]) -> str:  # noqa: ARG002
        """Uploads the file and creates a batch; see `Provider`."""
        return self._batches().create(name, group, file)

    def find(
        self,
        name: str,
        ids: Collection[str],  # noqa: ARG002
        since: datetime,
        known: Collection[str],
    ) -> str | None:
        """The batch of that name; see `Provider`."""
        return self._batches().find(name, since, known)

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How the batches stand; see `Provider`."""
        return self._batches().statuses(batch_ids)

    def results(self, batch_id: str) -> Iterator[bytes]:
        """The result lines; see `Provider`."""
        return self._batches().results(batch_id)

    def cancel(self, batch_id: str) -> None:
        """Asks to end a batch; see `Provider`."""
        self._batches().cancel(batch_id)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        group = call.group
        return self._opened().call(group.model, group.route.lstrip(":"), call.body)

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
        if sdk is not None:
            sdk.close()

    def _batches(self) -> GeminiBatches:
        sdk = self._opened()
        from .gemini_batches import GeminiBatches

        return GeminiBatches(sdk)

    def _opened(self) -> GeminiSdk:
        with self._lock:
            if self._sdk is None:
                try:
                    from .gemini_sdk import GeminiSdk
                except ImportError:
                    raise MissingExtra(
                        "The place gemini needs: pip install 'recipes-orchestration[gemini]'"
                    ) from None
                self._sdk = GeminiSdk(self._base_url, self._api_key, self._timeout)
            return self._sdk
