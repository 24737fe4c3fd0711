"""Calls to Hugging Face's Hub: they end, and what goes wrong with them is said in our words.

huggingface_hub 2.4 sets no time limit (its `default_client_factory`), so one is set here for all
that this process asks through it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import MissingExtra, ProviderError, Refused, Unreachable

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

__all__ = ["READ_SECONDS", "bound_calls", "refusal", "tidy", "trouble"]

CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
MAX_WORDS = 600
# The Hub counts requests by windows of five minutes (https://huggingface.co/docs/hub/rate-limits,
# November 2026) and says how much of one is left, but for its limits of other kinds.
RATE_SECONDS = 300.0

_set_up = threading.Lock()
_bounded = False


def bound_calls() -> None:
    """Gives the client that huggingface_hub shares in this process its time limits, once.

    Raises `MissingExtra` when huggingface_hub is not installed.
    """
    global _bounded
    try:
        from huggingface_hub import set_client_factory
        from huggingface_hub.utils import disable_progress_bars
    except ImportError as error:
        raise MissingExtra(
            "Hugging Face Jobs need huggingface_hub, which is not installed here; "
            "pip install 'recipes-orchestration[huggingface]'"
        ) from error
    with _set_up:
        if not _bounded:
            set_client_factory(_client)
            disable_progress_bars()
            _bounded = True


def _client() -> Any:
    from httpx2 import Client, Timeout

    return Client(follow_redirects=True, timeout=Timeout(READ_SECONDS, connect=CONNECT_SECONDS))


def refusal(error: HfHubHTTPError, what: str, namespace: str, token: str) -> ProviderError:
    """The error for an answer that is one; `what` was asked for. The token is not shown."""
    status = int(error.response.status_code)
    said = _hidden(tidy(error.server_message or ""), token) or f"status {status}"
    said = said if said.endswith((".", "!")) else f"{said}."
    words = f"The Hub refused to {what}: {said}"
    if status == 429:
        return Refused(words, account=True, retry_after=_retry_after(error.response.headers))
    if status == 401:
        return Refused(f"{words} See whether the token is right.", account=True)
    if status == 402:
        return Refused(f"{words} See the credit of {namespace}.", account=True)
    if status == 403:
        return Refused(f"{words} See what the token may do in {namespace}.", account=True)
    if 400 <= status < 500 and status not in (408, 409, 412):
        return Refused(words)
    return ProviderError(f"The Hub failed when asked to {what}: {said}")


def trouble(error: Exception, what: str, token: str) -> ProviderError:
    """The error for a call without an answer."""
    from httpx2 import ConnectError, ConnectTimeout

    said = f"{type(error).__name__}: {_hidden(tidy(str(error)), token)}"
    if isinstance(error, ConnectError | ConnectTimeout):
        return Unreachable(f"The Hub could not be reached to {what}: {said}")
    return ProviderError(f"The Hub gave no answer when asked to {what}: {said}")


def tidy(words: str) -> str:
    """Words from outside as one bounded line."""
    return " ".join(words.split())[:MAX_WORDS]


def _hidden(words: str, token: str) -> str:
    return words.replace(token, "***") if token else words


def _retry_after(headers: Mapping[str, str]) -> float:
    from huggingface_hub.utils import parse_ratelimit_headers

    limit = parse_ratelimit_headers(headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    found = re.fullmatch(r"\s*(\d{1,7})\s*", headers.get("retry-after", ""))
    return float(found[1]) if found else RATE_SECONDS
