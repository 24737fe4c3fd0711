"""How much work goes into one task of a job place. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...runner.task_folder import MAX_PAGES
from ...runner.work import FailureKind, PageWork, TaskSpec

__all__ = ["FIRST_SECONDS", "TASK_SECONDS", "cut", "rung_of"]

TASK_SECONDS = 3600.0
"""A task is to take about so long: a shorter one waits more than it works, a longer one loses
more when its node fails."""

FIRST_SECONDS = 30.0
"""What a page is taken to need, in seconds, while nothing has landed: reading a full page on one
processor core takes about that."""

_CLIMBING = frozenset({FailureKind.EXPIRED, FailureKind.MEMORY, FailureKind.NODE})


def rung_of(page: PageWork) -> int:
    """The step of the ladder that a page stands on: how often its task ended before it was done.

    0 for a page that is new or that failed for a reason of its own: more time or more memory
    would not help it.
    """
    return page.attempts if page.failed in _CLIMBING else 0


def cut(
    spec: TaskSpec,
    pages_per_task: int | None = None,
    seconds_per_page: float | None = None,
    task_seconds: float = TASK_SECONDS,
) -> list[TaskSpec]:
    """The work in parts, each for one task: pages in their order, each in one part, none empty.

    All pages of a part stand on one rung, and the parts of one rung come together, the lowest
    first: an array has one time limit. Parts of one rung differ by at most one page. No part has
    more than `pages_per_task` pages, or else than what `task_seconds` are enough for at
    `seconds_per_page`.
    """
    most = pages_per_task or _most(seconds_per_page or FIRST_SECONDS, task_seconds)
    rungs: dict[int, list[PageWork]] = {}
    for page in spec.pages:
        rungs.setdefault(rung_of(page), []).append(page)
    return [
        replace(spec, pages=tuple(part))
        for _, pages in sorted(rungs.items())
        for part in _even(pages, max(1, min(most, MAX_PAGES)))
    ]


def _most(seconds_per_page: float, task_seconds: float) -> int:
    if seconds_per_page * MAX_PAGES <= task_seconds:
        return MAX_PAGES
    return int(task_seconds / seconds_per_page)


def _even(pages: Sequence[PageWork], most: int) -> list[Sequence[PageWork]]:
    parts = -(-len(pages) // most)
    ends = [len(pages) * number // parts for number in range(parts + 1)]
    return [pages[start:end] for start, end in pairwise(ends)]
