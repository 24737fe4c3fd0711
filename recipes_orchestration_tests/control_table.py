"""The table of docs/control.md: what each decision does in every state of a task, and what it
comes to in numbers, at a provider and at a place that runs jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["CLOUD", "JOBS", "LABELS", "STATES", "TABLE", "Cell", "End"]

STATES = {
    "none": "none",
    "preparing": "preparing without id",
    "submitted": "submitted",
    "cancelling": "cancelling",
    "ended": "ended and not landed",
    "landed": "landed",
}
"""The states of a task, and how the docs call them."""


@dataclass(frozen=True)
class End:
    """What five pages come to: pages of each task that went, plain calls, landed pages, and who
    holds back. A task that is cancelled has answered two of its pages.
    """

    tasks: list[int]
    plain: int
    landed: int
    by: str = ""


@dataclass(frozen=True)
class Cell:
    """What the docs say, and what is measured."""

    words: str
    end: End


Row = Mapping[str, Cell]


def _row(*cells: Cell) -> Row:
    return dict(zip(STATES, cells, strict=True))


PAUSE = _row(
    Cell("nothing is sent", End([], 0, 0, "paused")),
    Cell(
        "it is looked up by its name, goes on and lands; was it never there, it is not sent again",
        End([5], 0, 5),
    ),
    Cell("goes on and lands", End([5], 0, 5)),
    Cell("what it answered lands; the rest is not sent", End([5], 0, 2, "paused")),
    Cell("lands", End([5], 0, 5)),
    Cell("nothing changes", End([5], 0, 5)),
)
STOP = _row(
    Cell("nothing is sent", End([], 0, 0, "stopped")),
    Cell(
        "it is looked up by its name and ended, what it answered lands; was it never there, it is "
        "not sent again",
        End([5], 0, 2, "stopped"),
    ),
    Cell("ended; what it answered lands; the rest is not sent", End([5], 0, 2, "stopped")),
    Cell("what it answered lands; the rest is not sent", End([5], 0, 2, "stopped")),
    Cell("lands", End([5], 0, 5)),
    Cell("nothing changes", End([5], 0, 5)),
)
_AGAIN = Cell("ended as the stop said, then only what is missing is sent", End([5, 3], 0, 5))
RESUME = _row(
    Cell("sent", End([5], 0, 5)),
    _AGAIN,
    _AGAIN,
    Cell("what is missing is sent once it has ended", End([5, 3], 0, 5)),
    Cell("lands", End([5], 0, 5)),
    Cell("nothing changes", End([5], 0, 5)),
)
NOW = _row(
    Cell("by plain calls", End([], 5, 5)),
    Cell("looked up and ended; the rest by plain calls", End([5], 3, 5)),
    Cell("ended; what it answered lands; the rest by plain calls", End([5], 3, 5)),
    Cell("what it answered lands; the rest by plain calls", End([5], 3, 5)),
    Cell("lands; what it did not answer by plain calls", End([5], 0, 5)),
    Cell("refused: nothing waits", End([5], 0, 5, "refused")),
)
# There are no plain calls to a machine: all goes on as if it had not been asked for.
NOW_AT_JOBS = _row(
    Cell("refused: there are no plain calls; sent as a job", End([5], 0, 5, "refused")),
    Cell("refused; looked up by its name, goes on and lands", End([5], 0, 5, "refused")),
    Cell("refused; goes on and lands", End([5], 0, 5, "refused")),
    Cell("refused; what it answered lands; the rest is sent", End([5, 3], 0, 5, "refused")),
    Cell("refused; lands", End([5], 0, 5, "refused")),
    Cell("refused", End([5], 0, 5, "refused")),
)
# One of the five pages is held from before, so that a task has the four others.
_BESIDE = "the page is sent by itself, beside the task"
_ALONE = "the page is sent by itself"
RETRY = _row(
    Cell("sent with the others", End([5], 0, 5)),
    Cell(_BESIDE, End([4, 1], 0, 5)),
    Cell(_BESIDE, End([4, 1], 0, 5)),
    Cell(f"{_ALONE}; what was ended is sent again", End([4, 1, 2], 0, 5)),
    Cell(_ALONE, End([4, 1], 0, 5)),
    Cell(_ALONE, End([4, 1], 0, 5)),
)
_LEFT = "the task is left as it is"
RELEASE = _row(
    Cell("never sent; nothing waits for it", End([4], 0, 4)),
    Cell(_LEFT, End([4], 0, 4)),
    Cell(_LEFT, End([4], 0, 4)),
    Cell(_LEFT, End([4, 2], 0, 4)),
    Cell(_LEFT, End([4], 0, 4)),
    Cell("the batch is complete without it", End([4], 0, 4)),
)
_VALUE_LEFT = "the value lands; the task is left"
_MARKED = "the value lands, marked"
_BY_HAND_WORDS = (_MARKED, _VALUE_LEFT, _VALUE_LEFT, _VALUE_LEFT, _VALUE_LEFT, _MARKED)
BY_HAND = _row(
    *(
        Cell(words, replace(RELEASE[state].end, landed=5))
        for state, words in zip(STATES, _BY_HAND_WORDS, strict=True)
    )
)

TABLE: Mapping[str, Row] = {
    "pause": PAUSE,
    "stop": STOP,
    "resume": RESUME,
    "now": NOW,
    "now at jobs": NOW_AT_JOBS,
    "retry": RETRY,
    "release": RELEASE,
    "by hand": BY_HAND,
}
LABELS = {
    "pause": "**pause**",
    "stop": "**stop**",
    "resume": "**resume** after a stop",
    "now": "**now** at a provider",
    "now at jobs": "**now** at a place that runs jobs",
    "retry": "**retry** of a held page",
    "release": "**release** of a held page",
    "by hand": "**release** with a value",
}
"""How the docs call the rows."""

CLOUD: Mapping[str, Row] = {name: row for name, row in TABLE.items() if name != "now at jobs"}
"""The rows of a provider."""

JOBS: Mapping[str, Row] = {**CLOUD, "now": NOW_AT_JOBS}
"""Those of Slurm and of Hugging Face Jobs."""
