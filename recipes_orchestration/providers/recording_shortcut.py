"""Clients of Anthropic's and OpenAI's SDKs that ask the run before an HTTP request is made.

Of an ordinary question, a POST of JSON with no headers, query or files beside it, both SDKs
(anthropic 2.14, openai 3.57: one generator writes them) send `openapi_dumps(options.json_data)`,
and make their objects of the answer's status and body alone. Building, signing and sending an httpx
request is half of what a question costs in them, so the clients here leave that out. Whatever is
not ordinary, and whatever goes live, is left to the HTTP client and its recording transport.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

import httpx2

from .recording_httpx import replayed
from .recording_routes import ROUTES, Request
from .recording_run import Asked, Halt, Run

__all__ = ["async_class", "client_over", "quick_class"]

# The client, and the method that every request passes once its body is whole.
INSIDE = {"anthropic": ("Anthropic", "_request"), "openai": ("OpenAI", "request")}
# What is asked of an answer's request is its headers.
REQUESTS = {
    path: httpx2.Request("POST", f"https://recorded{path}")
    for path in ("/v1/messages", "/chat/completions", "/responses", "/embeddings")
}
# The options of a request that `is_ordinary` looks at, and those that say nothing of what is sent.
KNOWN = frozenset(
    {"method", "url", "json_data", "headers", "params", "files", "content", "extra_json"}
    | {"timeout", "max_retries", "idempotency_key", "security", "post_parser"}
    | {"span_name", "span_route", "span_attributes"}
)


def quick_class(provider: str) -> Any:
    """The SDK's synchronous client with the short way in it; as it is where that does not fit."""
    name, method = INSIDE[provider]
    base: Any = getattr(import_module(provider), name)
    try:
        dumps: Any = import_module(f"{provider}._utils._json").openapi_dumps
        passed: Any = getattr(base, method)
        makes: Any = base._process_response
        refuses: Any = base._make_status_error_from_response
    except (ImportError, AttributeError):
        return base
    if not (
        takes(passed, "cast_to", "options", "stream", "stream_cls")
        and takes(makes, "cast_to", "options", "response", "stream", "stream_cls")
        and takes(refuses, "response")
    ):
        return base
    route = ROUTES[provider]

    def request(self: Any, cast_to: Any, options: Any, **more: Any) -> Any:
        """What the SDK makes of the answer to a request; raises `Halt` to end the code."""
        answer = None
        if self.run is not None and not more.get("stream") and is_ordinary(self, options):
            asked = route(Request("POST", options.url, {}, dumps(options.json_data)))
            answer = answered(self.run, asked)
        if answer is None:
            return passed(self, cast_to, options, **more)
        response = replayed(answer)
        response.request = REQUESTS[options.url]
        if response.is_error:
            raise refuses(self, response) from None
        return makes(
            self, cast_to=cast_to, options=options, response=response, stream=False, stream_cls=None
        )

    return type(f"Recorded{name}", (QuickClient, base), {method: request})


def async_class(provider: str) -> Any:
    """The SDK's asynchronous client, as it is."""
    return getattr(import_module(provider), f"Async{INSIDE[provider][0]}")


class QuickClient:
    """A client of one run. One that the code makes of it, by `with_options`, has no short way."""

    run: Run | None = None
    http: Callable[[], Any]

    @cached_property
    def _client(self) -> Any:
        """The HTTP client, made when a request goes by way of it."""
        return self.http()


def client_over(shared: Any, run: Run, http: Callable[[], Any]) -> Any:
    """A client of the run, with what `shared` was made with. Making a whole one takes 0.2 ms."""
    client: Any = copy.copy(shared)
    if isinstance(client, QuickClient):
        del client.__dict__["_client"]
        client.run, client.http = run, http
    else:
        client._client = http()
    return client


def takes(function: Any, *names: str) -> bool:
    """Whether the function has parameters of these names."""
    return set(names) <= inspect.signature(function).parameters.keys()


def is_ordinary(client: Any, options: Any) -> bool:
    """Whether the request is its body and nothing else."""
    return (
        options.method == "post"
        and options.url in REQUESTS
        and isinstance(options.json_data, dict)
        and options.model_fields_set <= KNOWN
        # The SDK names headers that are left out, with a value that counts as false.
        and not any((options.headers or {}).values())
        and not (options.params or options.files or client._custom_headers)
        and options.content is None
        and options.extra_json is None
    )


def answered(run: Run, asked: Asked) -> tuple[int, bytes] | None:
    """The run's answer; None for a request that is to go live."""
    try:
        return run.ask(asked)
    except Halt:
        return run.stopped()
