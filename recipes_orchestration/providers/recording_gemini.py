"""google-genai clients of one run that share all but their HTTP clients."""

from __future__ import annotations

import copy
from typing import Any

import httpx2
from google import genai

from .recording_run import Halt

__all__ = ["client_over", "shared_client"]


class RunClient(genai.Client):
    """A `genai.Client` over parts that are there already."""

    def __init__(self, api_client: Any) -> None:
        self._parts = api_client
        super().__init__()

    def _get_api_client(self, **_: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What the SDK's constructor asks for its parts (google-genai 3.6, client.py)."""
        return self._parts


class Nowhere(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Takes what reaches the shared client although a copy has HTTP clients of its own: no copy
    sends past its run, whatever another release of the SDK makes of them.
    """

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:  # noqa: ARG002
        """Sends nothing."""
        raise Halt

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:  # noqa: ARG002
        """Sends nothing."""
        raise Halt


def shared_client(key: str, base_url: str | None) -> genai.Client:
    """The client whose parts the others copy. Vertex is off, whatever its variables say: its
    batches are others.
    """
    options = genai.types.HttpOptions(
        base_url=base_url,
        httpx_client=httpx2.Client(transport=Nowhere()),
        httpx_async_client=httpx2.AsyncClient(transport=Nowhere()),
    )
    return genai.Client(vertexai=False, api_key=key, http_options=options)


def client_over(shared: genai.Client, http: Any, async_http: Any) -> genai.Client:
    """A client with HTTP clients of its own."""
    parts: Any = copy.copy(vars(shared)["_api_client"])
    vars(parts).update(_httpx_client=http, _async_httpx_client=async_http)
    return RunClient(parts)
