"""The transports that record and replay under the SDKs that speak through httpx2."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import httpx2

from .recording_routes import Request
from .recording_run import Asked, Halt, LiveCall, Run

if TYPE_CHECKING:
    import ssl

__all__ = ["AsyncRecordingTransport", "LiveSender", "RecordingTransport"]

# What the SDKs wait by themselves is ten minutes; another value also lets the Anthropic SDK ask for
# long answers without streaming, which a batch gives and which it refuses at its own default.
TIMEOUT = httpx2.Timeout(900.0, connect=5.0)
# The body is kept unpacked and whole, so these no longer describe it.
LEFT_OUT = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class LiveSender:
    """Sends requests to the provider for certain, with the real key in the place of the dummy.

    `authorize(headers)` gives the headers with the key in them, or the words of what is missing.
    """

    def __init__(self, authorize: Callable[[Mapping[str, str]], dict[str, str] | str]) -> None:
        self.authorize = authorize
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._client: httpx2.Client | None = None

    def _verify(self) -> ssl.SSLContext:
        """One TLS context for all connections: making one takes about 40 ms."""
        if self._context is None:
            self._context = httpx2.create_ssl_context()
        return self._context

    def client(self) -> httpx2.Client:
        """The connections of all threads, made for the first live call."""
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(verify=self._verify(), timeout=TIMEOUT)
            return self._client

    def async_client(self) -> httpx2.AsyncClient:
        """Connections of one call: they belong to an event loop, and each page has its own."""
        with self._lock:
            return httpx2.AsyncClient(verify=self._verify(), timeout=TIMEOUT)

    def request(self, run: Run, request: httpx2.Request, body: bytes) -> httpx2.Request:
        """The request with the real key; halts the run when there is none."""
        headers = self.authorize(request.headers)
        if isinstance(headers, str):
            run.halt(headers)
            raise AssertionError("halt raises")
        return httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None


def described(request: httpx2.Request, body: bytes) -> Request:
    """The request in the words of `recording_routes`."""
    return Request(request.method.upper(), request.url.path, request.headers, body)


def replayed(answer: tuple[int, bytes]) -> httpx2.Response:
    """A batch's answer as a response. An error asks the SDK not to try again: it stays."""
    status, body = answer
    headers = {"content-type": "application/json"}
    if status >= 400:
        headers["x-should-retry"] = "false"
    return httpx2.Response(status, headers=headers, content=body)


def heard(run: Run, asked: Asked, response: httpx2.Response) -> httpx2.Response:
    """Books a live answer that was read whole, and gives it on."""
    body = response.content
    if asked.reduce is not None and response.status_code < 400:
        body = asked.reduce(body)
    run.heard(LiveCall(asked.call, response.status_code, body))
    headers = [pair for pair in response.headers.multi_items() if pair[0].lower() not in LEFT_OUT]
    return httpx2.Response(response.status_code, headers=headers, content=response.content)


class RecordingTransport(httpx2.BaseTransport):
    """Takes every request of one run's synchronous client."""

    def __init__(self, run: Run, route: Callable[[Request], Asked], sender: LiveSender) -> None:
        self._run = run
        self._route = route
        self._sender = sender

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Records the request, answers it, or sends it."""
        try:
            return self._handled(request)
        except Halt:
            return replayed(self._run.stopped())

    def _handled(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        asked = self._route(described(request, body))
        answer = self._run.ask(asked)
        if answer is not None:
            return replayed(answer)
        with self._run.sending(asked.call, waited_for=True):
            live = self._sender.request(self._run, request, body)
            return heard(self._run, asked, self._sender.client().send(live))


class AsyncRecordingTransport(httpx2.AsyncBaseTransport):
    """Takes every request of one run's asynchronous client."""

    def __init__(self, run: Run, route: Callable[[Request], Asked], sender: LiveSender) -> None:
        self._run = run
        self._route = route
        self._sender = sender

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Records the request, answers it, or sends it."""
        try:
            return await self._handled(request)
        except Halt:
            return replayed(self._run.stopped())

    async def _handled(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        asked = self._route(described(request, body))
        answer = self._run.ask(asked)
        if answer is not None:
            return replayed(answer)
        with self._run.sending(asked.call, waited_for=False):
            live = self._sender.request(self._run, request, body)
            async with self._sender.async_client() as client:
                return heard(self._run, asked, await client.send(live))
