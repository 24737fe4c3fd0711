"""boto3's clients of Bedrock and S3, with what goes wrong said in our words.

Read in boto3 1.43: a client may be used by many threads; `total_max_attempts` of 1 is no retry;
`before-call` may change the request that was made before it is signed, `after-call` hears the
response as it came, errors too.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import boto3
import boto3.exceptions
import botocore.config
import botocore.exceptions
import botocore.loaders
import botocore.session

from ..errors import ProviderError, Refused
from .bedrock_calls import CONVERSE
from .bedrock_errors import clean, code_of_account, words_of_account
from .provider import Call
from .sdk_logs import quiet_sdk_logs

__all__ = ["Aws", "AwsOptions", "SaidNo"]

ATTEMPTS = 5
CONNECTIONS = 256
RATE_WAIT, QUOTA_WAIT = 60.0, 600.0
# 409 may mean that a job of that name is there already, after 408 it may come to be.
UNCERTAIN = frozenset({408, 409})
THROTTLED = frozenset({"ThrottlingException", "TooManyRequestsException", "Throttling", "SlowDown"})
RUNTIME = "bedrock-runtime"


@dataclass(frozen=True)
class AwsOptions:
    """Where the services are. What is None is found by boto3. `timeout` is in seconds."""

    base_url: str | None = None
    runtime_url: str | None = None
    s3_url: str | None = None
    region: str | None = None
    timeout: float = 600.0


@dataclass
class _Letter:
    """What a call of the runtime sends in the place of boto3's body, and what it is answered."""

    body: bytes = field(repr=False)
    status: int = 0
    reply: bytes = field(default=b"", repr=False)


class SaidNo(Refused):
    """A refusal with AWS's code for it."""

    def __init__(self, words: str, code: str, account: bool, retry_after: float | None) -> None:
        super().__init__(words, account=account, retry_after=retry_after)
        self.code = code


class Aws:
    """The clients, each made when it is first used."""

    def __init__(self, options: AwsOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._session: Any = None
        self._here = threading.local()
        quiet_sdk_logs()

    @property
    def jobs(self) -> Any:
        """Bedrock's batch jobs, with the SDK's retries."""
        return self._client("bedrock", self._options.base_url)

    @property
    def creating(self) -> Any:
        """Bedrock's batch jobs, every call made once whatever happens to it."""
        return self._client("bedrock", self._options.base_url, attempts=1)

    @property
    def s3(self) -> Any:
        """S3, with the SDK's retries."""
        return self._client("s3", self._options.s3_url)

    def call(self, call: Call) -> tuple[int, bytes]:
        """A call of a model with the SDK's retries: the status and body of what it answers."""
        model = call.group.model
        doing = f"answer a call of {model}"
        letter = _Letter(call.body)
        self._here.letter = letter
        try:
            with self.told(doing):
                client = self._client(RUNTIME, self._options.runtime_url)
                if call.group.route == CONVERSE:
                    client.converse(modelId=model, messages=[])
                else:
                    client.invoke_model(modelId=model, body=call.body)
        except SaidNo as no:
            if no.account or not letter.status:
                raise
        finally:
            self._here.letter = None
        return letter.status, letter.reply

    @contextmanager
    def told(self, doing: str, *, creates: bool = False) -> Generator[None]:
        """Around calls of the SDK: `Refused` is certain, any other error means unknown."""
        # `from None`: the SDK's errors may hold the request, and with it its signature.
        try:
            yield
        except botocore.exceptions.ClientError as error:
            raise _said(doing, error, creates) from None
        except boto3.exceptions.S3UploadFailedError as error:
            cause = error.__cause__ or error.__context__
            if isinstance(cause, botocore.exceptions.ClientError):
                raise _said(doing, cause, creates=False) from None
            raise _unknown(doing, error) from None
        except _UNSENT as error:
            raise Refused(
                f"AWS could not be asked to {doing}: {clean(str(error))}. Set the region and the "
                "credentials where the work runs, then let the place go on.",
                account=True,
            ) from None
        except botocore.exceptions.ParamValidationError as error:
            words = clean(str(error))
            raise Refused(f"AWS cannot be asked to {doing}: {words}. See the step.") from None
        except (botocore.exceptions.BotoCoreError, boto3.exceptions.Boto3Error) as error:
            raise _unknown(doing, error) from None

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _client(self, service: str, url: str | None, attempts: int = ATTEMPTS) -> Any:
        name = f"{service} {attempts}"
        # boto3 may make one client at a time.
        with self._lock:
            if name not in self._clients:
                self._clients[name] = self._made(service, url, attempts)
            return self._clients[name]

    def _made(self, service: str, url: str | None, attempts: int) -> Any:
        self._session = self._session or _session(self._options.region)
        config = botocore.config.Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            read_timeout=self._options.timeout,
            max_pool_connections=CONNECTIONS,
            # A server that stands in for S3 has no name for each bucket.
            s3={"addressing_style": "path"} if url else None,
        )
        region = self._session.region_name or ("us-east-1" if url else None)
        client = self._session.client(service, region_name=region, endpoint_url=url, config=config)
        if service == RUNTIME:
            client.meta.events.register(f"before-call.{RUNTIME}", self._put_in)
            client.meta.events.register(f"after-call.{RUNTIME}", self._take_out)
        return client

    def _put_in(self, params: dict[str, Any], **_: Any) -> None:
        letter: _Letter | None = getattr(self._here, "letter", None)
        if letter is not None:
            params["body"] = letter.body

    def _take_out(self, http_response: Any, parsed: Mapping[str, Any], **_: Any) -> None:
        letter: _Letter | None = getattr(self._here, "letter", None)
        if letter is None:
            return
        letter.status = http_response.status_code
        body = parsed.get("body")
        letter.reply = http_response.content if body is None else body.read()


def _session(region: str | None) -> Any:
    """A session of boto3's that shares the descriptions of the services with all others of ours.

    By itself each would read them anew, which takes longer than a look at all open jobs.
    """
    core: Any = botocore.session.get_session()
    loader = _descriptions(core.get_config_variable("data_path"))
    core.register_component("data_loader", loader)
    session = boto3.Session(botocore_session=core, region_name=region)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session adds boto3's own
    return session


@lru_cache(maxsize=4)
def _descriptions(path: str | None) -> Any:
    """Those that `boto3.client` has read for a step's code, where it has, else our own."""
    usual: Any = boto3.DEFAULT_SESSION
    if usual is not None and usual._session.get_config_variable("data_path") == path:
        return usual._session.get_component("data_loader")
    return botocore.loaders.create_loader(path)


_UNSENT = (
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.PartialCredentialsError,
    botocore.exceptions.CredentialRetrievalError,
    botocore.exceptions.TokenRetrievalError,
    botocore.exceptions.SSOError,
    botocore.exceptions.ProfileNotFound,
    botocore.exceptions.NoRegionError,
    botocore.exceptions.InvalidRegionError,
)


def _said(doing: str, error: Any, creates: bool) -> ProviderError:
    """What AWS answered, as `SaidNo` when nothing was accepted for certain."""
    response: Mapping[str, Any] = error.response
    told = response.get("Error", {})
    code, words = str(told.get("Code", "")), clean(str(told.get("Message", "")))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    throttled = status == 429 or code in THROTTLED
    account = code_of_account(code) or words_of_account(words) or (throttled and creates)
    heard = ": ".join(filter(None, [clean(code), words])) or f"HTTP {status}"
    passing = not 400 <= status < 500 or status in UNCERTAIN or (throttled and not account)
    # A model that took too long (408) was asked all the same: that is the page's answer.
    if passing and code != "ModelTimeoutException":
        return ProviderError(f"AWS did not {doing}: {heard}; it is asked again later.")
    wait = RATE_WAIT if throttled and "per day" not in words else None
    if code == "ServiceQuotaExceededException":
        wait = QUOTA_WAIT
    todo = "Set it right there, then let the place go on." if account else "See the request."
    if wait is not None:
        todo = f"It may be asked again in {wait:.0f} s."
    return SaidNo(f"AWS refused to {doing}: {heard}. {todo}", code, account, wait)


def _unknown(doing: str, error: Exception) -> ProviderError:
    return ProviderError(f"AWS did not {doing} ({type(error).__name__}); it is asked again later.")
