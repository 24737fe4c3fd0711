"""Hugging Face's Hub as the place `hf_jobs` asks it: its jobs, its hardware, its errors in ours.

https://huggingface.co/docs/hub/jobs and huggingface_hub 2.4 (November 2026).
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...errors import ProviderError, Refused, Unreachable
from ...still_ours import still_ours
from .calls import bound_calls, refusal, tidy, trouble

if TYPE_CHECKING:
    from huggingface_hub import HfApi, JobInfo, Volume

__all__ = ["OPEN_STAGES", "Hub", "Job", "JobOrder", "NotThere", "job_of"]

# Longer lists are cut off. A job that is not seen in one is asked for by its id, a file is sent.
MAX_LIST_PAGES = 500
# Seconds before a page of a list is asked for again that did not come.
LIST_PAUSES = (0.5, 1.5)
LOG_LINES, LOG_LINE = 20, 300
# Seconds that a job has run of which no more is known than that it began.
A_MOMENT = 0.001

OPEN_STAGES = ("SCHEDULING", "RUNNING")


@dataclass(frozen=True)
class Job:
    """A job as the Hub shows it. `seconds` is how long it ran; `stage` may be a word of later."""

    id: str
    stage: str
    message: str
    flavor: str
    seconds: float
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class JobOrder:
    """What a job is to be. `secrets` are values and are never shown; times are in seconds."""

    name: str
    labels: Mapping[str, str]
    image: str
    command: Sequence[str]
    flavor: str
    timeout: int
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    volumes: Sequence[Volume] = ()


class NotThere(Refused):
    """The folder or file that was asked for is not in its repository or bucket."""


class Hub:
    """The Hub with a token, which is never shown, and the jobs of one namespace.

    Raises `MissingExtra` when huggingface_hub is not installed. Every call raises `Refused` for
    what the Hub does not do, `Unreachable` when it could not be asked, and `ProviderError` when
    what it did is not known.
    """

    def __init__(self, namespace: str, token: str, endpoint: str | None = None) -> None:
        bound_calls()
        self.namespace = namespace
        self.endpoint = endpoint.rstrip("/") if endpoint else None
        self._token = token

    @cached_property
    def api(self) -> HfApi:
        """The client, for calls inside `asking`."""
        from huggingface_hub import HfApi

        return HfApi(endpoint=self.endpoint, token=self._token)

    @property
    def token(self) -> str:
        """The token, for the job that is to use the same repository."""
        return self._token

    def headers(self) -> dict[str, str]:
        """What a plain call carries."""
        from huggingface_hub.utils import build_hf_headers

        return build_hf_headers(token=self._token)

    @contextmanager
    def asking(self, what: str) -> Generator[None]:
        """Turns errors of the calls inside into ours; `what` is what was asked for."""
        from httpx2 import HTTPError
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError

        try:
            yield
        except EntryNotFoundError as error:
            raise NotThere(f"There is nothing at the Hub to {what}: {tidy(str(error))}") from None
        except HfHubHTTPError as error:
            raise refusal(error, what, self.namespace, self._token) from None
        except HFValidationError as error:
            raise Refused(f"The Hub would not take it to {what}: {tidy(str(error))}") from None
        except (HTTPError, OSError, RuntimeError) as error:  # the last are hf_xet's
            raise trouble(error, what, self._token) from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ProviderError(
                f"The Hub's answer could not be read when asked to {what}: "
                f"{type(error).__name__}: {tidy(str(error))}"
            ) from error

    def run(self, order: JobOrder) -> Job:
        """Starts a job, by one request that is never repeated."""
        still_ours()
        with self.asking(f"start a job in {self.namespace}"):
            return job_of(
                self.api.run_job(
                    image=order.image,
                    command=list(order.command),
                    env=dict(order.environment),
                    secrets=dict(order.secrets) or None,
                    flavor=order.flavor,
                    timeout=order.timeout,
                    name=order.name,
                    labels=dict(order.labels),
                    volumes=list(order.volumes) or None,
                    namespace=self.namespace,
                )
            )

    def job(self, id: str) -> Job | None:
        """The job of that id, or None when the Hub does not know it."""
        from huggingface_hub.errors import JobNotFoundError

        with self.asking(f"show job {id}"):
            try:
                return job_of(self.api.inspect_job(job_id=id, namespace=self.namespace))
            except JobNotFoundError:
                return None

    def jobs(self, labels: Mapping[str, str], stages: Sequence[str] = ()) -> Iterator[Job]:
        """The jobs that have all these labels, at one of these stages if any are given."""
        from huggingface_hub import JobInfo

        asked: list[tuple[str, str]] = [("stage", stage) for stage in stages]
        asked += [("label", f"{name}={value}") for name, value in labels.items()]
        what = f"list the jobs of {self.namespace}"
        for told in self.items(f"/api/jobs/{self.namespace}", asked, what):
            with self.asking(what):
                job = job_of(JobInfo(**told))
            yield job

    def items(
        self, path: str, asked: Sequence[tuple[str, str]], what: str
    ) -> Iterator[dict[str, Any]]:
        """The entries of a list that the Hub gives in pages.

        The client's own lists sleep through rate limits, longer than a sensor may take.
        """
        params: Sequence[tuple[str, str]] | None = asked
        url: str | None = f"{self.api.endpoint}{path}"
        for _ in range(MAX_LIST_PAGES):
            items, url = self._page(url, params, what)
            yield from items
            if url is None:
                return
            params = None  # the next page's address has them

    def _page(
        self, url: str, asked: Sequence[tuple[str, str]] | None, what: str
    ) -> tuple[list[dict[str, Any]], str | None]:
        for pause in (*LIST_PAUSES, None):
            try:
                return self._page_once(url, asked, what)
            except ProviderError as error:
                if pause is None or isinstance(error, Refused | Unreachable):
                    raise
                time.sleep(pause)
        raise AssertionError

    def _page_once(
        self, url: str, asked: Sequence[tuple[str, str]] | None, what: str
    ) -> tuple[list[dict[str, Any]], str | None]:
        from huggingface_hub import get_session
        from huggingface_hub.utils import hf_raise_for_status

        params: list[tuple[str, str | int | float | bool | None]] | None
        params = None if asked is None else [*asked]
        with self.asking(what):
            response = get_session().get(url, params=params, headers=self.headers())
            hf_raise_for_status(response)
            items = [dict(each) for each in response.json()]
            return items, self._next(response.links.get("next", {}).get("url"))

    def cancel(self, id: str) -> None:
        """Asks to end the job; one that has ended or is gone is no error."""
        try:
            with self.asking(f"end job {id}"):
                self.api.cancel_job(job_id=id, namespace=self.namespace)
        except Refused as no:
            if no.account:
                raise
            job = self.job(id)
            if job is not None and job.stage in OPEN_STAGES:
                raise

    def log(self, id: str) -> str:
        """The last lines of what the job wrote, for a person; none when they are not to be had."""
        try:
            with self.asking(f"show the log of job {id}"):
                lines = self.api.fetch_job_logs(job_id=id, namespace=self.namespace, tail=LOG_LINES)
                kept = [tidy(str(line))[:LOG_LINE] for line in islice(lines, LOG_LINES)]
        except ProviderError:
            return ""
        return " / ".join(line for line in kept if line)

    def prices(self) -> dict[str, tuple[int, str]]:
        """Millionths of a dollar and the unit, such as `minute`, for each flavor."""
        with self.asking("list the hardware of jobs"):
            return {
                each.name: (int(each.unit_cost_micro_usd), str(each.unit_label))
                for each in self.api.list_jobs_hardware()
            }

    def _next(self, url: str | None) -> str | None:
        """The next page of a list, if it is at the Hub itself: it is asked for with the token."""
        if url is None or urlsplit(url)[:2] != urlsplit(self.api.endpoint)[:2]:
            return None
        return url


def job_of(info: JobInfo) -> Job:
    """The job that the Hub tells of."""
    return Job(
        id=str(info.id),
        stage=str(getattr(info.status.stage, "value", info.status.stage)),
        message=tidy(str(info.status.message or "")),
        flavor=str(getattr(info.flavor, "value", info.flavor) or ""),
        seconds=_seconds(info),
        labels=_texts(info.labels),
        environment=_texts(info.environment),
    )


def _seconds(info: JobInfo) -> float:
    """How long a job ran; not 0 when it ran at all, as a minute that was begun is billed.

    The Hub counts whole seconds and leaves off what is beyond them.
    """
    counted = info.durations.running_secs if info.durations is not None else None
    ran = float(counted or 0)
    if info.started_at is None:
        return max(0.0, ran)
    if info.finished_at is not None:
        ran = max(ran, (info.finished_at - info.started_at).total_seconds())
    return max(A_MOMENT, ran)


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(name): str(value) for name, value in (values or {}).items()}
