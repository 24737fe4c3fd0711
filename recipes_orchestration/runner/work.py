"""What is handed to whoever runs steps, and what comes back. Plain data that pickles well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..pages.source import SourceReader
from ..recipe import Step

__all__ = ["Failure", "FailureKind", "Outcome", "PageWork", "TaskSpec"]


class FailureKind(StrEnum):
    """Why a page has no result, as far as it decides what happens next."""

    UNREADABLE = "unreadable"  # only other bytes would help: held at once
    SOURCE = "source"  # the file could not be fetched: tried again by every run
    FAILED = "failed"  # the step raised: tried again, then held
    DIED = "died"  # the worker process ended on this page
    TIMEOUT = "timeout"  # the page took longer than the limit


@dataclass(frozen=True)
class Failure:
    """A page that gave no result at a step: the kind, and the reason in words for a person."""

    kind: FailureKind
    words: str


@dataclass(frozen=True)
class Outcome:
    """What one step gave on one page: a JSON value, or why not."""

    page_id: str
    step: str
    seconds: float
    value: Any = None
    failure: Failure | None = None


@dataclass(frozen=True)
class PageWork:
    """One page of a task: the steps to run on it in order, and the values already landed.

    `data` is the file's bytes where no other process could fetch them.
    """

    page_id: str
    sha256: str
    file: str
    frame: int | None
    steps: tuple[str, ...]
    needs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TaskSpec:
    """One thing to send: steps over pages of one batch.

    `name` is ours and unique. `import_path` is the folder that `module:function` steps are
    imported from. `max_pixels` bounds a page before it is decoded.
    """

    name: str
    steps: tuple[Step, ...]
    pages: tuple[PageWork, ...]
    reader: SourceReader
    import_path: str
    max_pixels: int = 150_000_000
