"""Gemini: generated content, vectors, and batch mode, through google-genai's developer API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from ..steps.ask import Answer
from .connected_provider import NamingProvider, Notation
from .gemini_answers import read_generated, read_result, read_vector, result_of
from .gemini_calls import batch_line, embeds, make_call
from .provider import BatchLimits, Call, Group

if TYPE_CHECKING:
    from .gemini_batches import GeminiBatches
    from .gemini_sdk import GeminiSdk

__all__ = ["GeminiProvider"]

# "The maximum allowed file size is 2GB", the Batch API guide (November 2026), in the smaller
# gigabytes. How many requests it may hold is documented nowhere; so many are ours.
LIMITS = BatchLimits(max_requests=200_000, max_bytes=2_000_000_000)


class GeminiProvider(NamingProvider["GeminiSdk"]):
    """Google's project of one key. `timeout` is in seconds, for one request.

    Without `api_key` and `base_url` the key is GOOGLE_API_KEY or GEMINI_API_KEY, as in the SDK, and
    the address GOOGLE_GEMINI_BASE_URL. The SDK is loaded when the first request is made.
    """

    name = "gemini"
    limits = LIMITS
    notation = Notation(make_call, batch_line, read_result, result_of)

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 600.0
    ) -> None:
        super().__init__()
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:
        """What a response says; see `Provider`."""
        return read_vector(response) if embeds(group) else read_generated(response)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        group = call.group
        return self._connected().call(group.model, group.route.lstrip(":"), call.body)

    def _batches(self) -> GeminiBatches:
        sdk = self._connected()
        from .gemini_batches import GeminiBatches

        return GeminiBatches(sdk)

    def _open(self) -> GeminiSdk:
        try:
            from .gemini_sdk import GeminiSdk
        except ImportError:
            raise MissingExtra(
                "The place gemini needs: pip install 'recipes-orchestration[gemini]'"
            ) from None
        return GeminiSdk(self._base_url, self._api_key, self._timeout)
