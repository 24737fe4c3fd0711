"""What a request of a provider's SDK asks: the call that a batch can carry, or why none can."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pydantic_core import from_json

from .anthropic_calls import ROUTE
from .gemini_calls import EMBED, GENERATE
from .openai_calls import CHAT, EMBEDDINGS
from .provider import Call, Group
from .recording_run import Asked

__all__ = ["ROUTES", "Request", "json_object", "step_advice", "streaming"]

# The SDK's base URL ends in /v1 and a gateway's may not: only the end of the path counts.
OPENAI_ROUTES = (CHAT, "/v1/responses", EMBEDDINGS)
GEMINI_PATH = re.compile(r"/(?P<kind>models|tunedModels)/(?P<model>[^/:]+)(?P<method>:[A-Za-z]+)$")


@dataclass(frozen=True)
class Request:
    """One HTTP request as an SDK makes it. `headers` have lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def step_advice(asked: str) -> str:
    """A refusal's last words, after what the step's code asks for."""
    return (
        f"The step's code asks for {asked}, which no batch can carry. Make the page's question its "
        "first request, or run the step on the place `local` with a client of its own."
    )


def streaming(route: str) -> str:
    """The refusal of a request whose answer would be streamed."""
    return (
        f"The step's code asks {route} for a stream, which no batch can give. Ask without "
        "streaming (`stream=True`, `.stream(…)`): the answer comes whole."
    )


def json_object(body: bytes) -> dict[str, Any]:
    """The body as a JSON object, empty when it is none (an upload, a GET).

    pydantic's reader takes 0.04 ms for a picture of 300 KB, the standard library's 0.3 ms.
    """
    try:
        value = from_json(body) if body else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def unknown(provider: str, request: Request) -> Asked:
    """A request that is no question to a model, such as a list of models or an upload."""
    call = Call(provider, Group(request.path, ""), request.body)
    return Asked(call, step_advice(f"{request.method} {request.path}"))


def posted(provider: str, request: Request, route: str, betas: tuple[str, ...] = ()) -> Asked:
    """A question to the model that the body names, at a route of the provider's batches."""
    body = json_object(request.body)
    model = body.get("model")
    call = Call(
        provider, Group(route, model if isinstance(model, str) else "", betas), request.body
    )
    if not call.group.model:
        return Asked(call, f"The step's code asks {route} without a model. Give `model=`.")
    return Asked(call, streaming(route) if body.get("stream") is True else None)


def anthropic(request: Request) -> Asked:
    """Messages, also those of `client.beta`, whose betas travel as a header."""
    if request.method != "POST" or not request.path.endswith(ROUTE):
        return unknown("anthropic", request)
    named = request.headers.get("anthropic-beta", "").split(",")
    betas = tuple(sorted({beta.strip() for beta in named} - {""}))
    return posted("anthropic", request, ROUTE, betas)


def openai(request: Request) -> Asked:
    """Chat completions, responses and embeddings."""
    for route in OPENAI_ROUTES:
        if request.method == "POST" and request.path.endswith(route.removeprefix("/v1")):
            return posted("openai", request, route)
    return unknown("openai", request)


def gemini(request: Request) -> Asked:
    """Generated content and single embeddings of a model, which the path names."""
    match = GEMINI_PATH.search(request.path)
    if match is None or request.method != "POST":
        return unknown("gemini", request)
    method, model = match["method"], unquote(match["model"])
    if match["kind"] != "models":
        model = f"{match['kind']}/{model}"
    call = Call("gemini", Group(method, model), request.body)
    if method in (GENERATE, EMBED):
        return Asked(call)
    if method == ":streamGenerateContent":
        return Asked(call, streaming("streamGenerateContent"))
    if method == ":batchEmbedContents":
        return gemini_embedding(call)
    return unknown("gemini", request)


def gemini_embedding(call: Call) -> Asked:
    """The SDK asks for one vector as a list of one; a batch carries the one.

    `embed_content` of google-genai 3.6 posts to batchEmbedContents always.
    """
    requests = json_object(call.body).get("requests")
    if not isinstance(requests, list) or len(requests) != 1 or not isinstance(requests[0], dict):
        count = len(requests) if isinstance(requests, list) else 0
        return Asked(
            call,
            f"The step's code asks for {count} vectors in one request, and a batch gives one a "
            "request. Embed one text a page.",
        )
    # The model is in the batch's address.
    one = {name: value for name, value in requests[0].items() if name != "model"}
    body = json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode()
    group = Group(EMBED, call.group.model)
    return Asked(Call("gemini", group, body), restore=as_list_of_one, reduce=as_one)


def as_list_of_one(body: bytes) -> bytes:
    """An embedContent answer as batchEmbedContents would have given it."""
    answer = json_object(body)
    one = answer.pop("embedding", None)
    return json.dumps({**answer, "embeddings": [] if one is None else [one]}).encode()


def as_one(body: bytes) -> bytes:
    """A batchEmbedContents answer of one vector as embedContent would have given it."""
    answer = json_object(body)
    many = answer.pop("embeddings", None)
    one = {"embedding": many[0]} if isinstance(many, list) and many else {}
    return json.dumps({**answer, **one}).encode()


ROUTES: Mapping[str, Callable[[Request], Asked]] = {
    "anthropic": anthropic,
    "openai": openai,
    "gemini": gemini,
}
