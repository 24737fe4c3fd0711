"""Recording and replay under boto3's bedrock-runtime, by the events that boto3 emits itself.

boto3 1.43 asks the handlers of `before-call` with the finished body, before it signs; what a
handler gives back is taken in the place of sending. So neither capture nor replay needs credentials
or opens a connection. A live call is made by a second client with the real credentials.
"""

from __future__ import annotations

import copy
import io
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import botocore.config
import botocore.exceptions
import botocore.parsers
from botocore.awsrequest import AWSResponse
from botocore.endpoint import convert_to_response_dict
from botocore.response import StreamingBody

from ..errors import StepError
from .recording_bedrock import asked_of
from .recording_run import Asked, Halt, LiveCall, Run
from .recording_sdks import PLACEHOLDER, SdkOptions

__all__ = ["BotoSdk"]

SERVICE = "bedrock-runtime"
# Where a call's parameters are kept between two events of it.
PARAMETERS = "recipes-parameters"
NO_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and the step's code makes a request "
    "that is not in the batch and has to be sent. Set them or AWS_PROFILE where the step runs, "
    "then run it again."
)
NO_REGION = (
    "AWS_DEFAULT_REGION is not set, and the step's code makes a request that is not in the batch "
    "and has to be sent. Set it, or `region` of the place `bedrock` in project.yaml."
)


# The error that Bedrock names in a header which a batch's answers have not (the API reference of
# Converse, "Errors", read 2026-11-29).
ERROR_CODES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


@dataclass(frozen=True)
class Heard:
    """A response as boto3 parsed it, with the HTTP response that came."""

    http: Any
    parsed: Any


class NoAsyncClient:
    """In the place of an asynchronous client, which boto3 has not."""

    def __getattr__(self, name: str) -> Any:
        raise StepError(
            "boto3 has no asynchronous client for Bedrock. Ask through `ctx.client` in the step's "
            "code, in threads when several pages' worth of questions are asked at once."
        )


class BotoSdk:
    """Clients of one run over a shared one: making one takes 2 ms, a copy next to none."""

    def __init__(self, options: SdkOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._live: Any = None
        session = boto3.Session(region_name=options.region)
        self._region: str | None = session.region_name
        # Credentials that are named keep boto3 from looking for others, which may take the network.
        self._shared: Any = session.client(
            SERVICE,
            region_name=self._region or "us-east-1",
            endpoint_url=options.base_url,
            aws_access_key_id=PLACEHOLDER,
            aws_secret_access_key=PLACEHOLDER,
        )
        model = self._shared.meta.service_model
        self._parser: Any = botocore.parsers.create_parser(model.resolved_protocol)

    def client(self, run: Run) -> Any:
        """A bedrock-runtime client whose every call goes through the run."""

        def answer(model: Any, params: Any, context: dict[str, Any], **_: Any) -> tuple[Any, Any]:
            given = context[PARAMETERS]
            asked = asked_of(model.name, given, whole(params["body"]), params["url_path"])
            try:
                return self._answered(run, model, asked, given)
            except Halt:
                return self._replayed(model, *run.stopped())

        return clone_of(self._shared, RunEvents(self._shared.meta.events, answer))

    def async_client(self, run: Run) -> Any:  # noqa: ARG002
        """Says that there is none when it is used."""
        return NoAsyncClient()

    def _answered(
        self, run: Run, model: Any, asked: Asked, parameters: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """The HTTP response and what boto3 made of it, from the run's answers or live."""
        found = run.ask(asked)
        if found is not None:
            return self._replayed(model, *found)
        with run.sending(asked.call, waited_for=True):
            heard = self._send(run, model.name, parameters)
        run.heard(LiveCall(asked.call, heard.http.status_code, body_of(heard)))
        return heard.http, heard.parsed

    def _replayed(self, model: Any, status: int, body: bytes) -> tuple[Any, Any]:
        """A batch's answer as boto3 would have parsed it from the wire."""
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        if status in ERROR_CODES:
            headers["x-amzn-errortype"] = ERROR_CODES[status]
        http = AWSResponse("", status, headers, Raw(body))
        response = convert_to_response_dict(http, model)
        parsed = self._parser.parse(response, model.output_shape)
        parsed.setdefault("ResponseMetadata", {})["RetryAttempts"] = 0
        return http, parsed

    def _send(self, run: Run, operation: str, parameters: Mapping[str, Any]) -> Heard:
        """Makes the call for certain, with boto3's own retries; halts the run without credentials.

        An error that Bedrock answered is a response here: the run's client raises it.
        """
        if self._region is None and self._options.base_url is None:
            run.halt(NO_REGION)
        live = self._live_client()
        events = copy.copy(live.meta.events)
        kept: list[Heard] = []

        def keep(http_response: Any, parsed: Any, **_: Any) -> None:
            kept.append(Heard(http_response, parsed))

        events.register(f"after-call.{SERVICE}", keep)
        method = getattr(clone_of(live, events), botocore.xform_name(operation))
        try:
            method(**parameters)
        except botocore.exceptions.ClientError:
            if not kept:
                raise
        except (
            botocore.exceptions.NoCredentialsError,
            botocore.exceptions.PartialCredentialsError,
        ):
            run.halt(NO_CREDENTIALS)
        return kept[0]

    def _live_client(self) -> Any:
        """The client that sends, made for the first live call."""
        with self._lock:
            if self._live is None:
                self._live = boto3.Session(region_name=self._options.region).client(
                    SERVICE,
                    region_name=self._region or "us-east-1",
                    endpoint_url=self._options.base_url,
                    config=botocore.config.Config(read_timeout=900, max_pool_connections=32),
                )
            return self._live

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            for client in (self._shared, self._live):
                if client is not None:
                    client.close()
            self._live = None


class Raw(io.BytesIO):
    """A body as urllib3 gives it to boto3."""

    def stream(self, **_: Any) -> Any:
        """The body in pieces."""
        yield self.read()


def whole(body: Any) -> bytes:
    """A body as bytes; boto3 gives text or an open file where the caller did."""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    content = body.read()
    body.seek(0)
    return content if isinstance(content, bytes) else content.encode()


def body_of(heard: Heard) -> bytes:
    """The bytes of a live response; a body that streams is read whole and put back."""
    for name, value in dict(heard.parsed).items():
        if isinstance(value, StreamingBody):
            content = value.read()
            value.close()
            heard.parsed[name] = StreamingBody(io.BytesIO(content), len(content))
            return content
        if type(value).__name__ == "EventStream":
            return b""
    return heard.http.content


class RunEvents:
    """A client's events, with the answers of one run before all others.

    Registering with a copy of the events for each run would do the same and takes 1 ms.
    """

    def __init__(self, shared: Any, answer: Callable[..., tuple[Any, Any]]) -> None:
        self._events = shared
        self._answer = answer
        self._own = False

    def emit(self, event_name: str, **given: Any) -> Any:
        """Keeps the parameters of a call for its `before-call`."""
        if event_name.startswith("provide-client-params."):
            given["context"][PARAMETERS] = given["params"]
        return self._events.emit(event_name, **given)

    def emit_until_response(self, event_name: str, **given: Any) -> Any:
        """Answers a call before it would be signed and sent."""
        if event_name.startswith("before-call."):
            return self._answer, self._answer(**given)
        return self._events.emit_until_response(event_name, **given)

    def __getattr__(self, name: str) -> Any:
        """The rest is as it was; what the code registers itself stays with this client."""
        if "register" in name and not self._own:
            self._events = copy.copy(self._events)
            self._own = True
        return getattr(self._events, name)


def clone_of(client: Any, events: Any) -> Any:
    """A client that shares all with another but the events it emits.

    No `copy.copy`: boto3's clients look up unknown attributes through the events that the copy has
    not yet.
    """
    clone = object.__new__(type(client))
    vars(clone).update(vars(client))
    clone.meta = copy.copy(client.meta)
    clone.meta.events = events
    return clone
