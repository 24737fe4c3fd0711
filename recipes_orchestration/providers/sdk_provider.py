"""What the providers with SDKs of one make share: the client that opens when it is needed."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from ..errors import Refused
from .batch_lists import BatchList
from .provider import BatchStatus, Call
from .sdk_http import SdkHttp

__all__ = ["Batches", "SdkProvider", "checked_key", "no_key"]


class Batches(Protocol):
    """What is asked of a provider's batches in the same way at all of them."""

    list: BatchList

    def results(self, id: str) -> Iterator[bytes]:
        """The result lines of a batch."""
        ...

    def cancel(self, id: str) -> None:
        """Asks to end a batch."""
        ...

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself."""
        ...


KEY = re.compile("[!-~]+")

BatchesT = TypeVar("BatchesT", bound=Batches)


class SdkProvider(Generic[BatchesT]):
    """One account with one key. `timeout` is in seconds, for one request.

    Without `api_key` and `base_url` the SDK reads its own environment variables. It is loaded, and
    the key looked for, when the first request is made.
    """

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 600.0
    ) -> None:
        self._base_url = base_url
        self._api_key = None if api_key is None else api_key.strip()
        self._timeout = timeout
        self._lock = threading.Lock()
        self._http: SdkHttp | None = None

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        """How the batches stand; see `Provider`."""
        return self._batches().list.statuses(batch_ids)

    def results(self, batch_id: str) -> Iterator[bytes]:
        """The result lines; see `Provider`."""
        return self._batches().results(batch_id)

    def cancel(self, batch_id: str) -> None:
        """Asks to end a batch; see `Provider`."""
        self._batches().cancel(batch_id)

    def plain(self, call: Call) -> tuple[int, bytes]:
        """Makes a call by itself; see `Provider`."""
        return self._batches().plain(call)

    def close(self) -> None:
        """Closes the connections; the next request opens them again."""
        with self._lock:
            if self._http is not None:
                self._http.close()
            self._http = None

    def _connected(self) -> SdkHttp:
        with self._lock:
            if self._http is None:
                self._http = self._open()
            return self._http

    def _open(self) -> SdkHttp:
        raise NotImplementedError

    def _batches(self) -> BatchesT:
        raise NotImplementedError


def no_key(title: str, variable: str) -> Refused:
    """The error that there is no key in the environment."""
    return Refused(
        f"There is no key for {title}. Set {variable}, or the variable that api_key_env names in "
        "project.yaml, and start again.",
        account=True,
    )


def checked_key(title: str, *keys: str | None) -> None:
    """Refuses keys that no header can hold: the HTTP library would log the header with the key."""
    if any(key is not None and not KEY.fullmatch(key) for key in keys):
        raise Refused(
            f"The key for {title} holds blanks, line ends or other characters that no key has. "
            "Set its environment variable again, and start again.",
            account=True,
        )
