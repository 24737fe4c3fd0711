"""What every provider can do: make a call of a question, send calls as a batch, read answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..steps.ask import Answer, Ask, EmbedAsk

__all__ = [
    "BatchLimits",
    "BatchState",
    "BatchStatus",
    "Call",
    "Group",
    "Line",
    "LineKind",
    "Provider",
]


class Group(NamedTuple):
    """What all calls of one provider batch must share.

    `route` is the path of the call such as `/v1/messages`, `betas` are Anthropic's beta names,
    sorted, which travel as a header of the batch.
    """

    route: str
    model: str
    betas: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def _head(provider: str, group: Group) -> Callable[[], Any]:
    """What gives the hash of what comes before a call's body, to go on from."""
    words = [provider, group.route, group.model, *group.betas, ""]
    return hashlib.sha256("\n".join(words).encode()).copy


class Call(NamedTuple):
    """One request to a model, as it would be sent by itself. `body` is its JSON, in UTF-8."""

    provider: str
    group: Group
    body: bytes

    def __repr__(self) -> str:
        """Without the body: it has the page in it."""
        return f"Call({self.provider!r}, {self.group!r}, {len(self.body)} bytes)"

    @property
    def id(self) -> str:
        """What names the call in a batch: 32 hexadecimal digits, equal for equal calls."""
        digest = _head(self.provider, self.group)()
        digest.update(self.body)
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class BatchLimits:
    """What one batch of the provider may hold.

    Bytes are those of the whole file or body: `overhead` and the length of every line.
    """

    max_requests: int
    max_bytes: int
    min_requests: int = 1
    overhead: int = 0


class BatchState(StrEnum):
    """How a batch stands at its provider."""

    RUNNING = "running"
    ENDED = "ended"  # whatever it answered can be fetched now, which may be nothing
    FAILED = "failed"  # as a whole, with no line answered
    FORGOTTEN = "forgotten"  # the provider does not know the id


@dataclass(frozen=True)
class BatchStatus:
    """A batch's state and the provider's own words for it, counts included.

    `account`: it failed for a reason that no page is to blame for (no credit, key, unknown model,
    a limit of the account), for `retry_after` seconds where that passes by itself. `answered` of
    `requests` are done so far, where the provider says it. `expired`: it ended because its time
    was over.
    """

    state: BatchState
    words: str
    account: bool = False
    answered: int | None = None
    requests: int | None = None
    expired: bool = False
    retry_after: float | None = None


class LineKind(StrEnum):
    """What became of one request of a batch."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Line(NamedTuple):
    """One result line: `response` is the body that a plain call would have given.

    `words` is the provider's reason when it is not SUCCEEDED. `account`: the reason lies with the
    account, not with the request.
    """

    id: str
    kind: LineKind
    response: Mapping[str, Any] | None = None
    words: str = ""
    account: bool = False

    def __repr__(self) -> str:
        """Without the response."""
        return f"Line({self.id!r}, {self.kind!r}, {self.words!r}, account={self.account})"


class Provider(Protocol):
    """One provider of cloud models: its calls, its batch API and its plain calls.

    The last methods talk to the provider, through its own SDK. They raise `Refused` when the
    provider says no for certain, `MissingExtra` when its SDK is not installed, and
    `ProviderError` for whatever else goes wrong: then nothing is known.
    """

    name: str
    limits: BatchLimits

    def call(self, ask: Ask | EmbedAsk, model: str) -> Call:
        """The call that asks it. Pure. Raises `StepError` for what the provider cannot be asked."""
        ...

    def answer(self, group: Group, response: Mapping[str, Any]) -> Answer:
        """What a response says. Pure. Raises `StepError` when it has not the expected shape."""
        ...

    def line(self, id: str, call: Call) -> bytes:
        """One request as a line of JSON of a batch's file, ending in `\\n`. Pure."""
        ...

    def read_line(self, line: bytes) -> Line | None:
        """What a result line says; None when it is broken or names no request. Pure."""
        ...

    def result_line(self, id: str, status: int, response: bytes) -> bytes:
        """A plain call's response as the line that a batch would have answered. Pure."""
        ...

    def submit(self, name: str, group: Group, file: Path, ids: Collection[str]) -> str:
        """Creates a batch of the lines in `file`, with retries off; gives the batch's id.

        Streams the file: memory does not grow with it.
        """
        ...

    def find(
        self, name: str, ids: Collection[str], since: datetime, known: Collection[str]
    ) -> str | None:
        """The id of the batch that was asked for under this name, or None when there is none.

        `ids` are its requests, `since` is just before it was first asked for, `known` are ids of
        batches that are known to be others. Raises `InDoubt` when a batch may be it and only time
        will tell.
        """
        ...

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How each batch stands, in as few calls as the API allows; every id gets an answer."""
        ...

    def results(self, batch_id: str) -> Iterator[bytes]:
        """The result lines, those of errors too, without their line ends; streamed."""
        ...

    def cancel(self, batch_id: str) -> None:
        """Asks to end the batch; one that has ended already is no error."""
        ...

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes the call by itself with the SDK's own retries: HTTP status and response body.

        A status of 400 and above is an answer too, unless it is the account's: that is `Refused`.
        """
        ...

    def close(self) -> None:
        """Closes its connections."""
        ...
