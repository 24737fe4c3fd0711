"""What the providers with SDKs of one make share: how their client is opened."""

from __future__ import annotations

import re
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from ..errors import MissingExtra, Refused
from .connected_provider import ConnectedProvider
from .sdk_http import Manners, SdkHttp, no_long_sleep
from .sdk_logs import quiet_sdk_logs

__all__ = ["SdkProvider"]

CONNECT_SECONDS = 10.0
# What a key consists of. The HTTP library logs a header that it cannot send, with the key in it.
KEY = re.compile("[!-~]+")


class SdkProvider(ConnectedProvider[SdkHttp]):
    """One account with one key. `timeout` is in seconds, for one request.

    Without `api_key` and `base_url` the SDK reads its own environment variables. It is loaded, and
    the key looked for, when the first request is made. `variable` is where the SDK finds a key;
    the SDK is the module `name`, with a client class that is called as the provider.
    """

    variable: str
    manners: Manners

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 600.0
    ) -> None:
        super().__init__()
        self._base_url = base_url
        self._api_key = None if api_key is None else api_key.strip()
        self._timeout = timeout

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
        quiet_sdk_logs()
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
