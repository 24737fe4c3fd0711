"""Runs the code of Python steps: records what it asks of a model, or answers it.

`Recorder.capture` runs a page's code until its first request and gives that request as a `Call`;
the recorded body becomes the batch's line as it is. `Recorder.replay` runs the same code again and
answers each request from the batch's answers by its hash. Both give the code the provider's own SDK
clients, over a transport of ours (or boto3's events).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import ConfigError, StepError
from .provider import Call
from .recording_run import Halt, LiveAllowance, LiveCall, Run
from .recording_sdks import HttpxSdk, Sdk, SdkOptions, missing_extra
from .sdk_logs import quiet_sdk_logs

__all__ = ["Clients", "LiveCall", "Recorder", "Replayed"]


KEPT_CLIENT = (
    "The step's code asked through a client of a page that is done already. Take `ctx.client` "
    "anew for every page instead of keeping it."
)


class Clients:
    """The provider's SDK clients of one capture or replay of one page, each made when asked for."""

    def __init__(self, sdk: Sdk, run: Run) -> None:
        self._sdk = sdk
        self._run = run

    @cached_property
    def client(self) -> Any:
        """The synchronous client, such as `anthropic.Anthropic`."""
        return self._sdk.client(self._run)

    @cached_property
    def async_client(self) -> Any:
        """The asynchronous client, such as `anthropic.AsyncAnthropic`."""
        return self._sdk.async_client(self._run)


@dataclass(frozen=True)
class Replayed:
    """What the code gave, and the requests that went live: those are paid beside the batch.

    A live call may be of any route of the SDK (then the call's `group.model` is empty), and its
    body may be no JSON.
    """

    value: Any
    live: tuple[LiveCall, ...] = field(default=(), repr=False)


class Recorder:
    """Runs the code of Python steps of one provider. May be used by many threads.

    `live_calls` bounds the requests that go live over the recorder's life. `base_url`, `api_key`
    and `region` are what the SDK finds by itself where None. Bedrock's runtime has an address of
    its own, `runtime_url`. A key is needed for live calls only.
    """

    def __init__(
        self,
        provider: str,
        *,
        model: str = "",
        base_url: str | None = None,
        api_key: str | None = None,
        runtime_url: str | None = None,
        region: str | None = None,
        live_calls: int = 100,
    ) -> None:
        self.provider = provider
        self.model = model
        self._allowance = LiveAllowance(live_calls)
        url = runtime_url if provider == "bedrock" else base_url
        self._sdk = sdk_of(provider, SdkOptions(url, api_key, region))
        quiet_sdk_logs()

    def capture(self, function: Callable[[Clients], Any]) -> Call:
        """Runs `function` until its first request, and gives that request. Nothing is sent.

        Raises `NotBatchable` when no batch can carry it, `StepError` when the function ends
        without asking anything, and what the function itself raises before it asks.
        """
        run = Run(None, self._allowance)
        self._finish(run, function)
        if run.captured is None:
            raise StepError(
                f"The step's code ended without asking a model of `{self.provider}`. Ask through "
                "`ctx.client` or `ctx.async_client`, or run the step on the place `local`."
            )
        return run.captured

    def replay(
        self,
        function: Callable[[Clients], Any],
        answers: Mapping[str, tuple[int, bytes]],
        heard: Callable[[LiveCall], None] | None = None,
        permit: Callable[[Call], None] | None = None,
    ) -> Replayed:
        """Runs `function` with `answers` (HTTP status and body by `Call.id`) to its requests.

        Any other request goes live. `heard` is called for each of these as it is answered, also
        when the function fails in the end; `permit` before each is sent, and what it raises of our
        errors ends the function. Raises `StepError` for a live call over the allowance
        or without a key, and what the function itself raises, such as the SDK's own errors.
        """
        run = Run(answers, self._allowance, heard, permit)
        value = self._finish(run, function)
        return Replayed(value, tuple(run.live))

    def _finish(self, run: Run, function: Callable[[Clients], Any]) -> Any:
        """Runs the function to its end or to where the run halts it."""
        value: Any = None
        try:
            value = function(Clients(self._sdk, run))
            no_coroutine(value)
        except BaseException as error:
            # A recorded request counts, whatever the code made of being stopped at it.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            if not run.halted:
                if holds_halt(error):
                    raise StepError(KEPT_CLIENT) from None
                raise
        finally:
            run.end()
        if run.trouble is not None:
            raise run.trouble
        return value

    def close(self) -> None:
        """Closes the connections of live calls."""
        self._sdk.close()


def holds_halt(error: BaseException) -> bool:
    """Whether the code was stopped; a task group wraps what its tasks raised."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(Halt) is not None
    return isinstance(error, Halt)


def no_coroutine(value: Any) -> None:
    """Raises `StepError` for what an `async def` gives when it is called."""
    if inspect.iscoroutine(value):
        value.close()
        raise StepError(
            "The step's function is an `async def`, and a step is a plain function. Run the "
            "coroutine in it: `def step(page, ctx): return asyncio.run(…)`."
        )


def sdk_of(provider: str, options: SdkOptions) -> Sdk:
    """The provider's SDK under recording. Raises `MissingExtra` when it is not installed."""
    match provider:
        case "anthropic" | "openai" | "gemini":
            return HttpxSdk(provider, options)
        case "bedrock":
            try:
                from .recording_boto import BotoSdk
            except ImportError:
                raise missing_extra(provider) from None
            return BotoSdk(options)
        case _:
            raise ConfigError(
                f"There is no recording of a provider `{provider}`. "
                "Use anthropic, openai, gemini or bedrock."
            )
