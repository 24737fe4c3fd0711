"""The rehearsal server: several providers and the endpoints that direct them, on one port."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..errors import ConfigError
from .anthropic import AnthropicSide
from .bedrock import BedrockSide
from .bedrock_store import BUCKET, REGION, SECRET
from .bedrock_store import KEY as AWS_KEY
from .gemini import GeminiSide
from .hub import HubSide
from .hub_desk import HUB_TOKEN
from .hub_script import HubScript
from .openai import OpenaiSide
from .script import Script
from .side import Side

__all__ = ["HUB", "PROVIDERS", "Rehearsal", "running_rehearsal"]

_SIDES: Mapping[str, type[Side]] = {
    "anthropic": AnthropicSide,
    "openai": OpenaiSide,
    "gemini": GeminiSide,
    "bedrock": BedrockSide,
}
PROVIDERS = tuple(_SIDES)
HUB = "hub"  # started only where it is named, because every download of a model asks HF_ENDPOINT
KEY = "rehearsal-key"


class _Protocol(HttpToolsProtocol):
    """Lets an endpoint reach the connection, so that it can be closed without an answer."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["rehearsal.transport"] = self.transport  # type: ignore[typeddict-unknown-key]


class Rehearsal:
    """A rehearsal: its providers, how they are directed, and where they are found."""

    def __init__(
        self,
        providers: Sequence[str] = PROVIDERS,
        scripts: Mapping[str, Script | HubScript] | None = None,
        *,
        port: int = 0,
    ) -> None:
        self.port = port
        self.sides: dict[str, Side | HubSide] = {
            name: HubSide() if name == HUB else _SIDES[name]() for name in providers
        }
        if HUB in self.sides:
            self.hub.located(self.url)
        for name, script in (scripts or {}).items():
            self.script(name, script)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, provider: str) -> str:
        """Where the provider's SDK finds it."""
        if provider == HUB:
            return self.url
        return f"{self.url}/{provider}" + ("/v1" if provider == "openai" else "")

    def side(self, provider: str) -> Side:
        """A model provider, with what a test may do to it. Only when it is rehearsed."""
        side = self.sides[provider]
        assert isinstance(side, Side)
        return side

    @property
    def hub(self) -> HubSide:
        """The Hugging Face hub, with what a test may do to it. Only when it is rehearsed."""
        hub = self.sides[HUB]
        assert isinstance(hub, HubSide)
        return hub

    def script(self, provider: str, script: Script | HubScript) -> None:
        """Says how a provider behaves from now on. Raises `ConfigError` for another's script."""
        match self.sides[provider], script:
            case HubSide() as hub, HubScript():
                hub.set_script(script)
            case Side() as side, Script():
                side.set_script(script)
            case _:
                raise ConfigError(
                    f"A {type(script).__name__} is no script for {provider}. "
                    "Give the hub a HubScript and all others a Script."
                )

    def counts(self, provider: str | None = None, *, hashes: bool = False) -> dict[str, Any]:
        """What was asked of each provider, or of one."""
        if provider is not None:
            return self.sides[provider].counts(hashes=hashes)
        return {name: side.counts(hashes=hashes) for name, side in self.sides.items()}

    def finish(self, provider: str) -> int:
        """Ends all open batches of a provider at once; how many there were."""
        return self.sides[provider].finish()

    def reset(self) -> None:
        """Forgets everything: scripts, batches and counts."""
        for side in self.sides.values():
            side.reset()

    def environment(self) -> dict[str, str]:
        """The environment variables by which the SDKs find it."""
        found: dict[str, str] = {}
        if "anthropic" in self.sides:
            found["ANTHROPIC_BASE_URL"] = self.base_url("anthropic")
            found["ANTHROPIC_API_KEY"] = KEY
        if "openai" in self.sides:
            found["OPENAI_BASE_URL"] = self.base_url("openai")
            found["OPENAI_API_KEY"] = KEY
        if "gemini" in self.sides:
            found["GOOGLE_GEMINI_BASE_URL"] = self.base_url("gemini")
            found["GEMINI_API_KEY"] = KEY
        if HUB in self.sides:
            found["HF_ENDPOINT"] = self.base_url(HUB)
            found["HF_TOKEN"] = HUB_TOKEN
            found["HF_HUB_DISABLE_TELEMETRY"] = "1"
            found["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        bedrock = self.sides.get("bedrock")
        if isinstance(bedrock, BedrockSide):
            found["AWS_ENDPOINT_URL_BEDROCK"] = self.base_url("bedrock")
            found["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = self.base_url("bedrock")
            found["AWS_ENDPOINT_URL_S3"] = bedrock.store.url
            found["AWS_ACCESS_KEY_ID"] = AWS_KEY
            found["AWS_SECRET_ACCESS_KEY"] = SECRET
            found["AWS_DEFAULT_REGION"] = REGION
        return found

    @property
    def s3_url(self) -> str:
        """Where S3 is; it has a bucket `rehearsal`. Only when Bedrock is rehearsed."""
        bedrock = self.sides["bedrock"]
        assert isinstance(bedrock, BedrockSide)
        return bedrock.store.url

    @property
    def bucket(self) -> str:
        """The bucket that is there from the beginning."""
        return BUCKET

    def app(self) -> Starlette:
        """The web application."""
        mounts = [
            Mount(f"/{name}", routes=side.routes())
            for name, side in self.sides.items()
            if name != HUB
        ]
        root = self.hub.routes() if HUB in self.sides else []
        handlers: Any = {ClientDisconnect: _gone}
        return Starlette(routes=[*self._control(), *mounts, *root], exception_handlers=handlers)

    def _control(self) -> list[Route]:
        side = "/_rehearsal/{provider}"
        return [
            Route("/_rehearsal/counts", self._counts),
            Route("/_rehearsal/reset", self._reset, methods=["POST"]),
            Route(side + "/script", self._script, methods=["PUT"]),
            Route(side + "/finish", self._finish, methods=["POST"]),
        ]

    async def _counts(self, request: Request) -> Response:
        return JSONResponse(self.counts(hashes=request.query_params.get("hashes") == "true"))

    async def _reset(self, _: Request) -> Response:
        await run_in_threadpool(self.reset)
        return JSONResponse({})

    async def _script(self, request: Request) -> Response:
        name = request.path_params["provider"]
        if name not in self.sides:
            return _no_provider(request)
        try:
            self.script(name, script_kind(name).model_validate_json(await request.body()))
        except ValidationError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse({})

    async def _finish(self, request: Request) -> Response:
        side = self.sides.get(request.path_params["provider"])
        if side is None:
            return _no_provider(request)
        return JSONResponse({"finished": await run_in_threadpool(side.finish)})

    def serve(self, listening: socket.socket, started: threading.Event | None = None) -> None:
        """Serves until `stop`; blocks."""
        config = uvicorn.Config(
            self.app(),
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,  # else it would set up logging for the whole process
            log_level="error",
            access_log=False,
            # Up to a second late, which the hub's client takes for the time of a log's line.
            date_header=HUB not in self.sides,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config, started)
        asyncio.run(self._server.serve([listening]))

    def close(self) -> None:
        """Lets go of what is open; the counts stay."""
        for side in self.sides.values():
            side.close()

    def stop(self) -> None:
        """Ends `serve`."""
        self._server.should_exit = True
        self._server.force_exit = True  # a client that waits for a late answer waits in vain


class _Server(uvicorn.Server):
    """Says when it has started."""

    def __init__(self, config: uvicorn.Config, started: threading.Event | None) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._started is not None:
            self._started.set()


async def _gone(_: Request, __: Exception) -> Response:
    """Nobody is left to answer: the client went away, as one does that is killed."""
    return Response(status_code=499)


def script_kind(provider: str) -> type[Script] | type[HubScript]:
    """The model that a provider's script is read with."""
    return HubScript if provider == HUB else Script


def _no_provider(request: Request) -> Response:
    words = f"There is no provider {request.path_params['provider']} in this rehearsal."
    return JSONResponse({"error": words}, status_code=404)


def listening_socket(port: int) -> socket.socket:
    """A socket on 127.0.0.1 that listens at once; port 0 is any free one."""
    # asyncio sends at once (no 40 ms a reply) only where the protocol is named.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(256)
    return listening


@contextmanager
def running_rehearsal(
    providers: Sequence[str] = PROVIDERS,
    scripts: Mapping[str, Script | HubScript] | None = None,
    *,
    port: int = 0,
) -> Generator[Rehearsal]:
    """A rehearsal in this process, in a thread of its own, as long as the block lasts."""
    with listening_socket(port) as listening:
        rehearsal = Rehearsal(providers, scripts, port=listening.getsockname()[1])
        started = threading.Event()
        thread = threading.Thread(
            target=rehearsal.serve, args=(listening, started), name="rehearsal", daemon=True
        )
        thread.start()
        started.wait(30)
        try:
            yield rehearsal
        finally:
            rehearsal.stop()
            thread.join(10)
            rehearsal.close()
