"""The SDK clients of one run, over the recording transports: Anthropic, OpenAI and Gemini."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from ..errors import MissingExtra
from .recording_run import Run

__all__ = ["PLACEHOLDER", "HttpxSdk", "Sdk", "SdkOptions", "missing_extra"]

# The clients that a page's code sees never hold a key; the transport puts it in for a live call.
PLACEHOLDER = "the-key-is-added-when-a-request-is-sent"


def missing_extra(provider: str) -> MissingExtra:
    """The error when the provider's SDK is not installed."""
    return MissingExtra(
        f"The step's place `{provider}` needs that provider's package, which is not installed. "
        f"Install it with `pip install 'recipes-orchestration[{provider}]'`."
    )


@dataclass(frozen=True)
class SdkOptions:
    """Where the SDK's clients speak to, and with which key. None takes what the SDK would."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    region: str | None = None


class Sdk(Protocol):
    """Makes the clients of one run; holds what all runs share."""

    def client(self, run: Run) -> Any:
        """The SDK's synchronous client, whose every request goes through the run."""
        ...

    def async_client(self, run: Run) -> Any:
        """The SDK's asynchronous client."""
        ...

    def close(self) -> None:
        """Closes the connections that live calls opened."""
        ...


def with_key(headers: Mapping[str, str], key: str | None, words: str) -> dict[str, str] | str:
    """Headers with the key in place of the dummy, whichever holds it; `words` without a key.

    A request that carries another key is the code's own affair.
    """
    if not any(PLACEHOLDER in value for value in headers.values()):
        return dict(headers)
    if not key:
        return words
    return {name: value.replace(PLACEHOLDER, key) for name, value in headers.items()}


def no_key(variable: str) -> str:
    """What is said when a live call has no key."""
    return (
        f"{variable} is not set, and the step's code makes a request that is not in the batch and "
        f"has to be sent. Set {variable} where the step runs, then run it again."
    )


class HttpxSdk:
    """An SDK that takes an httpx2 client: all its clients of a run share the run's transports."""

    def __init__(self, provider: str, options: SdkOptions) -> None:
        try:
            from . import recording_httpx
        except ImportError:
            raise missing_extra(provider) from None
        from .recording_routes import ROUTES

        authorize, make = SDKS[provider]
        self._httpx = recording_httpx
        self._route = ROUTES[provider]
        self._sender = recording_httpx.LiveSender(lambda headers: authorize(headers, options))
        try:
            self._maker = make(options)
        except ImportError:
            raise missing_extra(provider) from None

    def client(self, run: Run) -> Any:
        """The SDK's synchronous client over this run."""
        return self._maker.client(run, lambda: self._http(run), lambda: self._async_http(run))

    def async_client(self, run: Run) -> Any:
        """The SDK's asynchronous client over this run."""
        return self._maker.async_client(run, lambda: self._http(run), lambda: self._async_http(run))

    def _http(self, run: Run) -> Any:
        httpx = self._httpx
        return httpx.httpx2.Client(
            transport=httpx.RecordingTransport(run, self._route, self._sender),
            timeout=httpx.TIMEOUT,
            follow_redirects=True,
        )

    def _async_http(self, run: Run) -> Any:
        httpx = self._httpx
        return httpx.httpx2.AsyncClient(
            transport=httpx.AsyncRecordingTransport(run, self._route, self._sender),
            timeout=httpx.TIMEOUT,
            follow_redirects=True,
        )

    def close(self) -> None:
        """Closes the connections that live calls opened."""
        self._sender.close()


Http = Callable[[], Any]


class Maker(Protocol):
    """Makes an SDK's clients of a run over the run's HTTP clients, each made when called for."""

    def client(self, run: Run, http: Http, async_http: Http) -> Any:
        """The synchronous one."""
        ...

    def async_client(self, run: Run, http: Http, async_http: Http) -> Any:
        """The asynchronous one."""
        ...


class QuickMaker:
    """The clients of Anthropic and OpenAI. Those of a run are copies of one, with its own HTTP."""

    def __init__(self, provider: str, options: SdkOptions) -> None:
        from . import recording_shortcut

        self._recorded = recording_shortcut
        self._class = recording_shortcut.quick_class(provider)
        self._async_class = recording_shortcut.async_class(provider)
        self._options = options
        self._shared: Any = None

    def client(self, run: Run, http: Http, async_http: Http) -> Any:  # noqa: ARG002
        """The synchronous one."""
        if self._shared is None:
            self._shared = self._made(self._class, http())
        return self._recorded.client_over(self._shared, run, http)

    def async_client(self, run: Run, http: Http, async_http: Http) -> Any:  # noqa: ARG002
        """The asynchronous one."""
        return self._made(self._async_class, async_http())

    def _made(self, kind: Any, http: Any) -> Any:
        return kind(api_key=PLACEHOLDER, base_url=self._options.base_url, http_client=http)


def authorize_anthropic(headers: Mapping[str, str], options: SdkOptions) -> dict[str, str] | str:
    """With the key or the token that the SDK would take; both travel as a bearer token."""
    found = os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_AUTH_TOKEN")
    return with_key(headers, options.api_key or found, no_key("ANTHROPIC_API_KEY"))


def authorize_openai(headers: Mapping[str, str], options: SdkOptions) -> dict[str, str] | str:
    """With the key that the SDK would take."""
    found = os.environ.get("OPENAI_API_KEY")
    return with_key(headers, options.api_key or found, no_key("OPENAI_API_KEY"))


class GeminiMaker:
    """`google.genai.Client` and its `aio`.

    Making one whole client takes 40 ms, for a TLS context of web sockets. So the parts that hold
    no state of a run are made once, and a run's client is built over a copy with its own HTTP.
    """

    def __init__(self, options: SdkOptions) -> None:
        from . import recording_gemini

        self._sdk = recording_gemini
        self._shared = recording_gemini.shared_client(PLACEHOLDER, options.base_url)

    def client(self, run: Run, http: Http, async_http: Http) -> Any:
        """The synchronous one, whose `aio` is the asynchronous one."""
        return self._sdk.client_over(self._shared, run, http, async_http)

    def async_client(self, run: Run, http: Http, async_http: Http) -> Any:
        """The asynchronous one."""
        return self.client(run, http, async_http).aio


def authorize_gemini(headers: Mapping[str, str], options: SdkOptions) -> dict[str, str] | str:
    """With the key that the SDK would take: GOOGLE_API_KEY goes first."""
    found = os.environ.get("GOOGLE_API_KEY") or os.environ.get("GEMINI_API_KEY")
    return with_key(headers, options.api_key or found, no_key("GEMINI_API_KEY"))


Authorize = Callable[[Mapping[str, str], SdkOptions], "dict[str, str] | str"]
SDKS: Mapping[str, tuple[Authorize, Callable[[SdkOptions], Maker]]] = {
    "anthropic": (authorize_anthropic, partial(QuickMaker, "anthropic")),
    "openai": (authorize_openai, partial(QuickMaker, "openai")),
    "gemini": (authorize_gemini, GeminiMaker),
}
