"""Asks a provider by path through its own SDK's client, and says what went wrong in our words.

The SDKs of Anthropic and OpenAI are of one make: `get`, `post` and `delete` by path, `cast_to`
the HTTP response, `max_retries` for each request, and the same names of errors (read in anthropic
2.14 and openai 3.57, `_base_client.py` and `_exceptions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import ProviderError, Refused
from ..still_ours import still_ours
from .byte_lines import split_lines
from .json_values import as_dict, parse, tidy

__all__ = ["Manners", "SaidNo", "SdkHttp", "no_long_sleep"]

# Statuses with which a server says that it did not take a request. Not among them: 408 and 409,
# after which it may be at work, and every 5xx.
REFUSALS = frozenset({400, 401, 402, 403, 404, 405, 413, 414, 415, 422, 429, 431})
ACCOUNT_STATUSES = frozenset({401, 402, 403})
LONGEST_WAIT = 24 * 3600.0
LONGEST_SLEEP = 60.0


@dataclass(frozen=True)
class Manners:
    """How a provider says no. `title` names it for a person.

    `words` gives the words of an error's body, `account` whether it blames the account, and
    `wait` in how many seconds what was refused with these words may be sent again.
    """

    title: str
    words: Callable[[Mapping[str, Any]], str]
    account: Callable[[Mapping[str, Any]], bool]
    wait: Callable[[int, str], float | None]


class SaidNo(Refused):
    """A refusal over HTTP. `known` says that the body is an error of the provider's own shape."""

    def __init__(
        self, words: str, *, account: bool, retry_after: float | None, status: int, body: bytes
    ) -> None:
        super().__init__(words, account=account, retry_after=retry_after)
        self.status = status
        self.body = body
        self.known = bool(as_dict(as_dict(parse(body)).get("error")))


def no_long_sleep(response: Any) -> None:
    """A hook on responses: a call fails at once where the SDK would sleep as long as it is told.

    Anthropic's SDK sleeps for hours when `retry-after` says so, whoever waits for the answer.
    """
    wait = _retry_after(response.headers)
    if wait is not None and wait > LONGEST_SLEEP:
        response.headers["x-should-retry"] = "false"


class SdkHttp:
    """One SDK's client. Every method raises `SaidNo`, or `ProviderError` when nothing is known."""

    def __init__(self, sdk: Any, client: Any, manners: Manners) -> None:
        import httpx2

        self._sdk = sdk
        self._client = client
        self._manners = manners
        self._key = str(getattr(client, "api_key", None) or "")
        self._as_response = httpx2.Response
        # `OSError`, `ValueError` and `TypeError`: what a bad address or key raises in the client.
        http = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)
        base = sdk.APIError.__base__  # of errors about credentials too
        self._troubles = (*http, base, OSError, ValueError, TypeError)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The JSON object at a path."""
        return self.get_dated(path, query)[0]

    def get_dated(
        self, path: str, query: Mapping[str, Any] | None = None
    ) -> tuple[Mapping[str, Any], datetime | None]:
        """The JSON object at a path, and the provider's own time if it tells it."""
        options = {"params": dict(query)} if query else {}
        with self._told(f"GET {path}"):
            response = self._client.get(path, cast_to=self._as_response, options=options)
        return self._object(response, path), _date(response)

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of a file of JSON lines, streamed, without their ends."""
        with self._told(f"GET {path}"):
            response = self._client.get(
                path, cast_to=self._as_response, stream=True, stream_cls=self._sdk.Stream
            )
        try:
            with self._told(f"GET {path}"):
                yield from split_lines(response.iter_bytes())
        finally:
            response.close()

    def post(self, path: str) -> Mapping[str, Any]:
        """Asks for what may be asked for any number of times."""
        with self._told(f"POST {path}"):
            response = self._client.post(path, cast_to=self._as_response)
        return self._object(response, path)

    def delete(self, path: str) -> None:
        """Deletes what is at a path."""
        with self._told(f"DELETE {path}"):
            self._client.delete(path, cast_to=self._as_response)

    def create(
        self, path: str, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Mapping[str, Any]:
        """One POST with retries off; `body` is `content`, or `body` and `files`, of the SDK.

        Raises `TakenOver` when it is not ours to send any more.
        """
        still_ours()
        options = {"max_retries": 0, "follow_redirects": False, "headers": dict(headers or {})}
        with self._told(f"POST {path}", creates=True):
            response = self._client.post(path, cast_to=self._as_response, options=options, **body)
        return self._object(response, path)

    def call(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """A call of a model with the SDK's retries: the status and body of whatever it answers.

        Raises `SaidNo` for what is the account's, and `ProviderError` when the last try ended
        with a passing trouble (408, 409, 429, 5xx, no answer).
        """
        try:
            with self._told(f"POST {path}"):
                response = self._client.post(
                    path,
                    content=body,
                    cast_to=self._as_response,
                    options={"headers": dict(headers)},
                )
        except SaidNo as no:
            if no.account:
                raise
            return no.status, no.body
        return response.status_code, response.content

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    @contextmanager
    def _told(self, doing: str, *, creates: bool = False) -> Generator[None]:
        # `from None`: the SDK's errors hold the request, and with it the key.
        try:
            yield
        except self._sdk.APIStatusError as error:
            response = error.response
            raise self._status_error(
                doing, response.status_code, response.content, response.headers, creates
            ) from None
        except self._troubles as error:
            name = type(error).__name__
            raise ProviderError(
                f"{self._manners.title} did not answer {doing} ({name}); {_next(creates)}."
            ) from None

    def _status_error(
        self, doing: str, status: int, body: bytes, headers: Mapping[str, str], creates: bool
    ) -> ProviderError:
        told = as_dict(parse(body))
        known = bool(as_dict(told.get("error")))
        words = self._manners.words(told) if known else tidy(body[:300].decode(errors="replace"))
        words = words.replace(self._key, "[key]") if self._key else words
        blamed = status in ACCOUNT_STATUSES or (known and self._manners.account(told))
        # No provider answers these without words of its own: the address leads elsewhere.
        blamed = blamed or (status in (404, 405) and (creates or not known))
        blamed = blamed or (status == 429 and creates)
        title, words = self._manners.title, words.rstrip(".") or "no words"
        if status not in REFUSALS or (status == 429 and not blamed):
            return ProviderError(
                f"{title} answered {doing} with HTTP {status}: {words}; {_next(creates)}."
            )
        wait = _retry_after(headers) or self._manners.wait(status, words)
        todo = "Change what is asked, or leave it out." if doing.startswith("POST") else ""
        if blamed:
            todo = "Set it right there, then go on."
        if wait is not None:
            todo = f"It may be asked again in {wait:.0f} s."
        return SaidNo(
            f"{title} refused {doing} with HTTP {status}: {words}. {todo}".strip(),
            account=blamed,
            retry_after=wait,
            status=status,
            body=body,
        )

    def _object(self, response: Any, path: str) -> Mapping[str, Any]:
        value = as_dict(parse(response.content))
        if not value:
            raise ProviderError(
                f"{self._manners.title} answered {path} with no JSON object; it is asked again "
                "later."
            )
        return value


def _next(creates: bool) -> str:
    if creates:
        return "whether it took it is not known, so that is looked up first"
    return "it is asked again later"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a `retry-after` header, in either of its forms; None without one."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        moment = _moment(value)
        seconds = (moment - datetime.now(UTC)).total_seconds() if moment else 0.0
    return min(seconds, LONGEST_WAIT) if seconds > 0 else None


def _date(response: Any) -> datetime | None:
    return _moment(response.headers.get("date", ""))


def _moment(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
