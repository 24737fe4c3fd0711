"""What all providers share: a connection that opens when it is needed, and what is done by it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from ..steps.ask import Ask, EmbedAsk
from .provider import BatchLimits, BatchStatus, Call, Group, Line

__all__ = ["Batches", "ConnectedProvider", "NamedBatches", "NamingProvider", "Notation"]


@dataclass(frozen=True)
class Notation:
    """How a provider's calls and lines are written and read; see `Provider` for each."""

    call: Callable[[Ask | EmbedAsk, str], Call]
    line: Callable[[str, Call], bytes]
    read_line: Callable[[bytes], Line | None]
    result_line: Callable[[str, int, bytes], bytes]


class Connection(Protocol):
    """What is open until it is closed."""

    def close(self) -> None:
        """Closes it."""
        ...


class Batches(Protocol):
    """What is asked of a provider's batches in the same way at all of them; see `Provider`."""

    def statuses(self, ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How each stands."""
        ...

    def results(self, id: str) -> Iterator[bytes]:
        """The result lines of a batch."""
        ...

    def cancel(self, id: str) -> None:
        """Asks to end a batch."""
        ...


class NamedBatches(Batches, Protocol):
    """Batches that a provider keeps under the names they are given."""

    def create(self, name: str, group: Group, file: Path) -> str:
        """Creates a batch of the lines in the file; gives its id."""
        ...

    def find(self, name: str, since: datetime, known: Collection[str]) -> str | None:
        """The oldest batch of that name."""
        ...


ConnectionT = TypeVar("ConnectionT", bound=Connection)


class ConnectedProvider(ABC, Generic[ConnectionT]):
    """A provider whose connection opens when the first request is made; many threads may ask."""

    name: str
    limits: BatchLimits
    notation: ClassVar[Notation]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: ConnectionT | None = None

    def call(self, ask: Ask | EmbedAsk, model: str) -> Call:
        """The call that asks it; see `Provider`."""
        return self.notation.call(ask, model)

    def line(self, id: str, call: Call) -> bytes:
        """One request of a batch's file; see `Provider`."""
        return self.notation.line(id, call)

    def read_line(self, line: bytes) -> Line | None:
        """What a result line says; see `Provider`."""
        return self.notation.read_line(line)

    def result_line(self, id: str, status: int, response: bytes) -> bytes:
        """A plain call's response as a result line; see `Provider`."""
        return self.notation.result_line(id, status, response)

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How the batches stand; see `Provider`."""
        return self._batches().statuses(batch_ids)

    def results(self, batch_id: str) -> Iterator[bytes]:
        """The result lines; see `Provider`."""
        return self._batches().results(batch_id)

    def cancel(self, batch_id: str) -> None:
        """Asks to end a batch; see `Provider`."""
        self._batches().cancel(batch_id)

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> ConnectionT:
        with self._lock:
            if self._connection is None:
                self._connection = self._open()
            return self._connection

    @abstractmethod
    def _open(self) -> ConnectionT:
        """A connection. Raises `MissingExtra` when the SDK is not installed."""

    @abstractmethod
    def _batches(self) -> Batches:
        """The batches, by way of the connection."""


class NamingProvider(ConnectedProvider[ConnectionT]):
    """One that keeps a batch's name with it, and finds it by that alone."""

    def submit(self, name: str, group: Group, file: Path, ids: Collection[str]) -> str:  # noqa: ARG002
        """Creates a batch of the file under the name; see `Provider`."""
        return self._batches().create(name, group, file)

    def find(
        self,
        name: str,
        ids: Collection[str],  # noqa: ARG002
        since: datetime,
        known: Collection[str],
    ) -> str | None:
        """The batch of that name; see `Provider`."""
        return self._batches().find(name, since, known)

    @abstractmethod
    def _batches(self) -> NamedBatches:
        """The batches, by way of the connection."""
