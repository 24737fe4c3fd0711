"""What the providers with SDKs of one make share: the client that opens when it is needed."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from ..errors import MissingExtra, Refused
from .batch_lists import BatchList
from .provider import BatchStatus, Call
from .sdk_http import Manners, SdkHttp, no_long_sleep
from .sdk_logs import quiet_sdk_logs

__all__ = ["Batches", "SdkProvider"]

CONNECT_SECONDS = 10.0
# What a key consists of. The HTTP library logs a header that it cannot send, with the key in it.
KEY = re.compile("[!-~]+")


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


BatchesT = TypeVar("BatchesT", bound=Batches)


class SdkProvider(Generic[BatchesT]):
    """One account with one key. `timeout` is in seconds, for one request.

    Without `api_key` and `base_url` the SDK reads its own environment variables. It is loaded, and
    the key looked for, when the first request is made. `variable` is where the SDK finds a key;
    the SDK is the module `name`, with a client class that is called as the provider.
    """

    name: str
    variable: str
    manners: Manners

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
                quiet_sdk_logs()
            return self._http

    def _open(self) -> SdkHttp:
        sdk = self._sdk()
        if self._api_key == "":
            raise self._no_key()
        http = sdk.DefaultHttpxClient(event_hooks={"response": [no_long_sleep]})
        with ExitStack() as given_up:
            given_up.callback(http.close)
            try:
                client = getattr(sdk, self.manners.title)(
                    api_key=self._api_key,
                    base_url=self._base_url,
                    timeout=sdk.Timeout(self._timeout, connect=CONNECT_SECONDS),
                    http_client=http,
                )
            except sdk.APIError.__base__:  # Anthropic's also when a profile's file is amiss
                raise self._no_key() from None
            keys = [key for key in (client.api_key, getattr(client, "auth_token", None)) if key]
            if not keys and not getattr(client, "credentials", None):
                raise self._no_key()
            if not all(KEY.fullmatch(key) for key in keys):
                raise Refused(
                    f"The key for {self.manners.title} holds blanks, line ends or other "
                    f"characters that no key has. Set {self.variable} again.",
                    account=True,
                )
            given_up.pop_all()
        return SdkHttp(sdk, client, self.manners)

    def _sdk(self) -> Any:
        try:
            return import_module(self.name)
        except ImportError:
            raise MissingExtra(
                f"The place {self.name} needs: pip install 'recipes-orchestration[{self.name}]'"
            ) from None

    def _no_key(self) -> Refused:
        return Refused(
            f"There is no key for {self.manners.title}. Set {self.variable}, or the variable that "
            "api_key_env names in project.yaml, and start again.",
            account=True,
        )

    def _batches(self) -> BatchesT:
        raise NotImplementedError
