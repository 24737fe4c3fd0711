"""The HTTP client under google-genai, and one call of the SDK with what went over the wire.

The SDK makes typed objects of what comes, and drops on the way why a batch failed and how many of
its requests are done; and it builds bodies anew from typed objects. So its HTTP client is ours
(`HttpOptions.httpx_client`): it keeps the response of a call as it came, and can put a body in the
place of the one that the SDK made. Address, key, headers, timeouts and retries stay the SDK's.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

__all__ = ["Exchange", "GeminiHttp"]

CONNECTIONS = 256


@dataclass
class Exchange:
    """One call: the route and body to send in the place of the SDK's, and what was answered."""

    route: str | None = None
    body: bytes = field(default=b"", repr=False)
    status: int = 0
    reply: bytes = field(default=b"", repr=False)

    def put_into(self, request: httpx2.Request) -> httpx2.Request:
        """The SDK's request with this route and body."""
        headers = [pair for pair in request.headers.multi_items() if pair[0] != "content-length"]
        address = str(request.url).rpartition(":")[0]
        return httpx2.Request(
            request.method,
            f"{address}:{self.route}",
            headers=headers,
            content=self.body,
            extensions=request.extensions,
        )


class GeminiHttp(httpx2.Client):
    """Connections for any number of threads; each thread's call has an exchange of its own."""

    def __init__(self, certificates: ssl.SSLContext) -> None:
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        super().__init__(verify=certificates, follow_redirects=True, limits=limits)
        self._here = threading.local()

    @contextmanager
    def exchange(self, route: str | None = None, body: bytes = b"") -> Generator[Exchange]:
        """Around one call of the SDK in this thread."""
        exchange = Exchange(route, body)
        self._here.exchange = exchange
        try:
            yield exchange
        finally:
            self._here.exchange = None

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends as the exchange of this thread says, if there is one."""
        exchange: Exchange | None = getattr(self._here, "exchange", None)
        if exchange is None or options.get("stream"):
            return super().send(request, **options)
        if exchange.route is not None:
            request = exchange.put_into(request)
        response = super().send(request, **options)
        exchange.status, exchange.reply = response.status_code, response.content
        if exchange.route is not None and response.status_code == 200:
            # The SDK need not understand an answer that it did not ask for.
            return httpx2.Response(200, json={}, request=request)
        return response
