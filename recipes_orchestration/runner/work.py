"""What is handed to whoever runs steps, and what comes back. Plain data that pickles well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from ..pages.source import SourceReader
from ..recipe import Step

__all__ = [
    "CUT_SHORT",
    "UNANSWERED",
    "Failure",
    "FailureKind",
    "Outcome",
    "PageWork",
    "Spent",
    "TaskSpec",
    "Usual",
]


class FailureKind(StrEnum):
    """Why a page has no result, as far as it decides what happens next."""

    UNREADABLE = "unreadable"  # only other bytes would help: held at once
    SOURCE = "source"  # the file could not be fetched: tried again by every run
    FAILED = "failed"  # the step raised: tried again, then held
    DIED = "died"  # the worker process ended on this page
    TIMEOUT = "timeout"  # the page took longer than the limit
    ERRORED = "errored"  # the provider answered this request with an error
    ANSWER = "answer"  # answered and billed, but no result: cut off, refused, of the wrong shape
    EXPIRED = "expired"  # the batch's time was over before this request was answered
    BATCH = "batch"  # the provider's batch failed as a whole, for no reason of the account
    CANCELLED = "cancelled"  # somebody ended the batch at the provider
    MEMORY = "memory"  # its task ran out of memory
    NODE = "node"  # the place ended its task: preempted, a node that failed, lost
    MISSING = "missing"  # the batch ended and has no line for this request
    ACCOUNT = "account"  # the account's: the place is paused and no attempt is counted
    DEADLINE = "deadline"  # the step's deadline passed before it was answered: held
    STOPPED = "stopped"  # a person stopped it: no attempt is counted


UNANSWERED = (FailureKind.EXPIRED, FailureKind.BATCH)
"""A batch ended without working on the page: `on_expired` of its place says how it goes on."""

CUT_SHORT = (FailureKind.EXPIRED, FailureKind.MEMORY, FailureKind.NODE)
"""A job ended before it came to the page: its time or memory was over, or its machine gone."""


@dataclass(frozen=True)
class Failure:
    """A page that gave no result at a step: the kind, and the reason in words for a person."""

    kind: FailureKind
    words: str


class Spent(NamedTuple):
    """What an answer of a model cost. `usd` is None when the model's price is not known.

    `basis` says where the price comes from: `batch`, `plain`, `assumed`, `project`, `unknown`.
    """

    model: str
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    usd: Decimal | None
    basis: str


class Outcome(NamedTuple):
    """What one step gave on one page: a JSON value, or why not.

    `spent` is what it cost, whether the answer is a result or not.
    """

    page_id: str
    step: str
    seconds: float
    value: Any = None
    failure: Failure | None = None
    spent: Spent | None = None


@dataclass(slots=True)
class PageWork:
    """One page of a task: the steps to run on it in order, and the values already landed.

    Not frozen, which would make making one take five times as long, and there is one for each page.

    `data` is the file's bytes where no other process could fetch them. `attempts` is how often it
    failed before at the first of its steps, and `failed` the kind of the last failure.
    """

    page_id: str
    sha256: str
    file: str
    frame: int | None
    steps: tuple[str, ...]
    needs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: bytes | None = field(default=None, repr=False)
    attempts: int = 0
    failed: str | None = None


class Usual(NamedTuple):
    """What questions and answers of a step had before, on average.

    `tokens_out` are those of an answer, None when none has landed. Our own count of a question's
    tokens is to be multiplied by `factor` to be the provider's.
    """

    tokens_out: float | None = None
    factor: float = 1.0


_NOTHING_LANDED = Usual()


@dataclass(frozen=True)
class TaskSpec:
    """Work to send: steps over pages of one batch.

    `import_path` is the folder that `module:function` steps are
    imported from. `max_pixels` bounds a page before it is decoded. `folder` is a relative path of
    letters, digits and `-_~/` under which a place may keep what belongs to the batch.
    `seconds_per_page` is what the steps took together when they ran there before, and `usual` what
    a step at a provider was asked and answered.
    """

    steps: tuple[Step, ...]
    pages: Sequence[PageWork]
    reader: SourceReader
    import_path: str
    max_pixels: int = 150_000_000
    page_timeout: float = 600.0
    folder: str = ""
    seconds_per_page: float | None = None
    usual: Usual = _NOTHING_LANDED
