"""google-genai clients of one run that share all but their HTTP clients.

An ordinary question, a POST of `generateContent` without options of its own, is `json.dumps` of its
parameters, and its answer is made of the response's headers and text alone (google-genai 3.6,
`BaseApiClient.request`). So it is asked of the run before an HTTP request is built, and a run whose
questions are all ordinary makes no HTTP client. Whatever is not, and whatever goes live, is left
to the HTTP clients and their recording transports.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast

import httpx2
from google import genai
from google.genai import _api_client, errors

from .recording_httpx import replayed
from .recording_routes import Request, gemini
from .recording_run import Halt, Run
from .recording_shortcut import answered, takes

__all__ = ["client_over", "shared_client"]

QUESTION = re.compile(r"(?:models|tunedModels)/[^/:?]+:generateContent")
# What of a client's options would change the request.
BESIDE = ("extra_body", "retry_options", "base_url_resource_scope")
HTTP, ASYNC_HTTP = "_httpx_client", "_async_httpx_client"


class RunClient(genai.Client):
    """A `genai.Client` over parts that are there already."""

    def __init__(self, api_client: Any) -> None:
        self._parts = api_client
        super().__init__()

    def _get_api_client(self, **_: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What the SDK's constructor asks for its parts (google-genai 3.6, client.py)."""
        return self._parts


class RunParts(_api_client.BaseApiClient):
    """The parts of one run's clients. Of the shared client's, `run` is None."""

    run: Run | None = None
    http: Callable[[], Any]
    async_http: Callable[[], Any]

    @cached_property
    def _httpx_client(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The HTTP client, made when a request goes by way of it."""
        return self.http()

    @cached_property
    def _async_httpx_client(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The asynchronous one."""
        return self.async_http()

    def request(
        self,
        http_method: str,
        path: str,
        request_dict: dict[str, object],
        http_options: Any = None,
    ) -> Any:
        """The response to a request; raises `Halt` to end the code."""
        if self.run is not None and self._is_ordinary(http_method, path, http_options):
            sent = {name: value for name, value in request_dict.items() if name[:1] != "_"}
            asked = gemini(Request("POST", f"/{path}", {}, json.dumps(sent).encode()))
            answer = answered(self.run, asked)
            if answer is not None:
                response = replayed(answer)
                errors.APIError.raise_for_response(response)
                told = _api_client.HttpResponse(response.headers)
                return genai.types.HttpResponse(headers=told.headers, body=response.text)
        return super().request(http_method, path, request_dict, http_options)

    def _is_ordinary(self, http_method: str, path: str, http_options: Any) -> bool:
        """Whether the request is its body and nothing else."""
        return (
            http_method == "post"
            and not http_options
            and QUESTION.fullmatch(path) is not None
            and not any(getattr(self._http_options, name, None) for name in BESIDE)
        )


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


def client_over(
    shared: genai.Client, run: Run, http: Callable[[], Any], async_http: Callable[[], Any]
) -> genai.Client:
    """A client of the run with HTTP clients of its own, each made when it is needed."""
    parts: Any = copy.copy(vars(shared)["_api_client"])
    own = cast("dict[str, Any]", vars(parts))
    if _fits(type(parts), own):
        parts.__class__ = RunParts
        del own[HTTP], own[ASYNC_HTTP]
        own.update(run=run, http=http, async_http=async_http)
    else:
        own.update({HTTP: http(), ASYNC_HTTP: async_http()})
    return RunClient(parts)


def _fits(kind: type[Any], parts: Mapping[str, Any]) -> bool:
    """Whether the SDK is inside as the short way knows it."""
    return (
        kind is _api_client.BaseApiClient
        and HTTP in parts
        and ASYNC_HTTP in parts
        and takes(kind.request, "http_method", "path", "request_dict", "http_options")
    )
