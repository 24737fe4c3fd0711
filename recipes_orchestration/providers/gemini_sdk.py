"""Calls through google-genai, with what goes wrong said in our words.

Read in google-genai 3.6: without `retry_options` nothing is retried, and those of a single call go
before the client's; timeouts are in milliseconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
from google.auth import exceptions as auth_errors
from google.genai import Client, errors, types

from ..errors import ProviderError, Refused
from .gemini_errors import error_words, is_account, is_spent, retry_seconds
from .gemini_http import Exchange, GeminiHttp
from .json_values import as_dict, parse
from .sdk_logs import quiet_sdk_logs

__all__ = ["GeminiSdk", "SaidNo", "check_model"]

ATTEMPTS = 5
# Statuses with which a server says that it did not take a request. Not among them: 408, 409 and
# 499, after which it may be at work, and every 5xx.
REFUSALS = frozenset({400, 401, 402, 403, 404, 405, 411, 412, 413, 414, 415, 422, 429, 431})
RATE_WAIT = 60.0
KEY = re.compile("[!-~]+")
MODEL = re.compile(r"(?!.*\.\.)[\w./@:-]{1,256}")


class SaidNo(Refused):
    """A refusal with its HTTP status. `known`: its body is an error as Google writes them."""

    def __init__(
        self, words: str, status: int, *, known: bool, account: bool, retry_after: float | None
    ) -> None:
        super().__init__(words, account=account, retry_after=retry_after)
        self.status = status
        self.known = known


def check_model(model: str) -> None:
    """Raises `Refused` for a model name that cannot stand in an address."""
    if not MODEL.fullmatch(model):
        raise Refused(
            f"The model name {model[:100]!r} cannot stand in an address of Gemini. "
            "Give the step's `model` as Google writes it, such as gemini-3-flash.",
            account=True,
        )


class GeminiSdk:
    """One client of the developer API. `timeout` is in seconds, for one request."""

    def __init__(self, base_url: str | None, api_key: str | None, timeout: float) -> None:
        # In the order of the SDK, which warns when both are set and none is given to it.
        given = api_key or os.environ.get("GOOGLE_API_KEY") or os.environ.get("GEMINI_API_KEY")
        self._key = (given or "").strip()
        if not self._key:
            raise _no_key("There is no key for Gemini.")
        if not KEY.fullmatch(self._key):
            # The HTTP library would log the header that it cannot send, and with it the key.
            raise _no_key("The key for Gemini holds blanks, line ends or letters that no key has.")
        # Each would else be loaded four times, at a tenth of a second.
        certificates = httpx2.create_ssl_context()
        self._http = GeminiHttp(certificates)
        self._base_url = base_url
        self._timeout = round(timeout * 1000)
        options = types.HttpOptions(
            base_url=base_url,
            timeout=self._timeout,
            httpx_client=self._http,
            client_args={"verify": certificates},
            async_client_args={"verify": certificates, "ssl": certificates},
            retry_options=types.HttpRetryOptions(attempts=ATTEMPTS),
        )
        self.client = Client(vertexai=False, api_key=self._key, http_options=options)
        quiet_sdk_logs()

    def once(self) -> types.HttpOptions:
        """The options of a call that is made once whatever happens to it."""
        return types.HttpOptions(
            timeout=self._timeout, retry_options=types.HttpRetryOptions(attempts=1)
        )

    def uploading(self) -> types.HttpOptions | None:
        """The options of an upload: by them it goes to the same gateway as all else."""
        return types.HttpOptions(base_url=self._base_url) if self._base_url else None

    @contextmanager
    def told(self, doing: str, *, creates: bool = False) -> Generator[Exchange]:
        """Around one call of the SDK: `Refused` is certain, any other error means unknown."""
        # `from None`: the SDK's errors hold the request, and with it the key.
        with self._http.exchange() as exchange:
            try:
                yield exchange
            except errors.APIError as error:
                raise self._status_error(doing, error, creates) from None
            except (httpx2.HTTPError, httpx2.StreamError, auth_errors.GoogleAuthError) as error:
                raise self._unknown(doing, error) from None
            except (httpx2.InvalidURL, ValueError, KeyError, TypeError) as error:
                # What came back is not what the SDK takes for an answer.
                raise self._unknown(doing, error) from None

    def object(self, exchange: Exchange, doing: str) -> Mapping[str, Any]:
        """The JSON object that was answered."""
        value = parse(exchange.reply)
        if not isinstance(value, dict):
            raise ProviderError(
                f"Gemini answered with no JSON object when asked to {doing}; it is asked again "
                "later."
            )
        return as_dict(value)

    def call(self, model: str, route: str, body: bytes) -> tuple[int, bytes]:
        """A call of a model with the SDK's retries: the status and body of what it answers."""
        check_model(model)
        doing = f"answer a call of {model}"
        config = types.GenerateContentConfig(
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
        )
        with self._http.exchange(route, body) as exchange:
            try:
                self.client.models.generate_content(model=model, contents="-", config=config)
            except errors.APIError as error:
                told = _error_of(error)
                blamed = error.code == 404 or is_account(told)
                if blamed and (error.code != 429 or is_spent(told)):
                    raise self._refusal(doing, error, account=True) from None
                if error.code >= 500 or error.code not in REFUSALS or error.code == 429:
                    raise self._status_error(doing, error, creates=False) from None
            except (httpx2.HTTPError, auth_errors.GoogleAuthError) as error:
                raise self._unknown(doing, error) from None
        return exchange.status, exchange.reply

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()
        self._http.close()

    def _status_error(self, doing: str, error: errors.APIError, creates: bool) -> ProviderError:
        told = _error_of(error)
        account = is_account(told) or (creates and error.code == 404)
        if error.code == 429 and not creates:
            account = is_spent(told)
        if error.code not in REFUSALS or (error.code == 429 and not account):
            return ProviderError(
                f"Gemini did not {doing}: {self._clean(error_words(told))}; "
                "it is asked again later."
            )
        return self._refusal(doing, error, account=account)

    def _refusal(self, doing: str, error: errors.APIError, *, account: bool) -> SaidNo:
        told, status = _error_of(error), error.code
        wait = retry_seconds(told)
        if wait is None and status == 429 and not is_spent(told):
            wait = RATE_WAIT
        todo = "Set it right there, then let the place go on." if account else "See the request."
        if wait is not None:
            todo = f"It may be asked again in {wait:.0f} s."
        words = self._clean(error_words(told))
        return SaidNo(
            f"Gemini refused to {doing}: {words}. {todo}",
            status,
            known=bool(as_dict(as_dict(error.details).get("error"))),
            account=account,
            retry_after=wait,
        )

    def _unknown(self, doing: str, error: Exception) -> ProviderError:
        return ProviderError(
            f"Gemini did not {doing} ({type(error).__name__}); it is asked again later."
        )

    def _clean(self, words: str) -> str:
        return words.replace(self._key, "[key]")


def _no_key(words: str) -> Refused:
    return Refused(
        f"{words} Set GEMINI_API_KEY, or the variable that api_key_env names in project.yaml, and "
        "start again.",
        account=True,
    )


def _error_of(error: errors.APIError) -> Mapping[str, Any]:
    """The error object of a response, under its HTTP status."""
    details = as_dict(error.details)
    return {**(as_dict(details.get("error")) or details), "code": error.code}
