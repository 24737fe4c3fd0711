"""What every place can do: take a task, say how it stands, give its results, end it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from ..runner.work import Outcome, TaskSpec
from .money import Bill, Budget, Expected

__all__ = [
    "Answers",
    "Bill",
    "Chunk",
    "Message",
    "Package",
    "Place",
    "Report",
    "Sent",
    "Sought",
    "Standing",
    "State",
    "array_of",
]

_ELEMENT = re.compile(r"(.+-[0-9a-f]{32})_(\d+)")


class State(StrEnum):
    """How a task stands at its place."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"  # the task as a whole; its pages are not to blame
    LOST = "lost"  # the place is sure that nothing works on it any more
    UNKNOWN = "unknown"  # the place cannot tell from here


@dataclass(frozen=True)
class Standing:
    """A task's state, with words for a person.

    `account`: it failed for a reason of the account, so that the place is to be paused, for
    `retry_after` seconds where the reason passes by itself.
    """

    state: State
    words: str = ""
    account: bool = False
    retry_after: float | None = None


@dataclass(frozen=True)
class Package:
    """A part of the work, ready to be sent as one task.

    `pages` are those that the place is to work on, `decided` outcomes that were known while it
    was packed: pages that cannot be read, answers that need no question. `calls` are the ids of
    the pages' calls. `slot`: the task takes one of the place's slots. `group` is what a task must
    remember for its answers to be read. `content` is the place's own. `worst_usd` is the most that
    it can cost in dollars; None when nobody can tell, for the reason `worst_unknown`. `expected`
    is what it will likely cost; None where nothing is paid, or nothing is known of it.
    """

    pages: tuple[str, ...]
    decided: tuple[Outcome, ...] = ()
    calls: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    slot: bool = False
    group: Mapping[str, Any] = field(default_factory=dict[str, Any])
    content: Any = field(default=None, repr=False)
    worst_usd: Decimal | None = Decimal(0)
    worst_unknown: str = ""
    expected: Expected | None = None

    @property
    def page_ids(self) -> list[str]:
        """All pages of the package, each once."""
        return list(dict.fromkeys([*self.pages, *(each.page_id for each in self.decided)]))


@dataclass(frozen=True)
class Sought:
    """A task that may be at the place without its id being known here.

    `ids` are its calls, `since` is just before it was first asked for, and `known` are the remote
    ids that belong to other tasks. `slot`: it was sent as one that takes a slot.
    """

    name: str
    slot: bool = False
    ids: Collection[str] = ()
    since: datetime | None = None
    known: Collection[str] = ()


class Answers(Protocol):
    """Where a place keeps what it was answered, so that no answer is fetched or paid twice."""

    def keep(self, lines: Iterable[bytes]) -> None:
        """Keeps the lines whole, or not at all."""
        ...

    def kept(self) -> bool:
        """Whether lines were kept."""
        ...

    def lines(self) -> Generator[bytes]:
        """The lines that were kept; none when none were. Whoever stops early closes it."""
        ...


@dataclass(frozen=True)
class Sent:
    """A task at its place, as it was sent. `stopped` is why its end was asked for, if it was.
    `budget` is asked before anything more is paid for it; None where there is no cap.

    `load` reads the pages and what they need; it is called when `spec` is first asked for.
    """

    name: str
    remote_id: str
    load: Callable[[], TaskSpec] = field(repr=False)
    answers: Answers
    calls: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    group: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sent_at: datetime | None = None
    stopped: str | None = None
    budget: Budget | None = None

    @cached_property
    def spec(self) -> TaskSpec:
        """The work as it was sent."""
        return self.load()


@dataclass(frozen=True)
class Message:
    """A line of the far side's log. `level` is `debug`, `info`, `warning` or `error`."""

    level: str
    words: str


@dataclass(frozen=True)
class Report:
    """What the far side told of its work on a task.

    `facts` is JSON: `steps`, a list with the `name`, the pages `landed` and `failed`, `seconds`
    a page (`min`, `median`, `max`, `total`), `model_loads` and `load_seconds` of each; and
    `peak_memory_mb`, `versions`, `restarts`. `messages` are its log, oldest first.
    """

    facts: Mapping[str, Any]
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Outcomes that land together as one file a step; `part` counts from 1 within the task."""

    part: int
    outcomes: Sequence[Outcome]


class Place(Protocol):
    """Where steps run. All calls may be made at any moment and any number of times."""

    name: str
    # At most so many groups of tasks with a slot may be open at a time; None: there are no slots.
    max_open: int | None
    # How long the place may take to show a task that it accepted, in seconds.
    settle_seconds: float
    # A task that is still running so long after it was sent is ended, in seconds; None: never.
    overdue_seconds: float | None
    # So long the place knows a task that it took, in seconds; None: as long as it runs.
    keeps_seconds: float | None

    def takes_slot(self, pages: int, *, now: bool) -> bool:
        """Whether so much work would be packed into tasks that take a slot."""
        ...

    def pack(self, spec: TaskSpec, *, now: bool = False) -> Iterator[Sequence[Package]]:
        """The work cut into tasks, in groups, one after another: one is sent before the next is
        made.

        Each group goes by one call of `submit`. A package without pages is a group of its own.
        `now`: a person waits for it. A package that is not submitted is to be discarded.
        """
        ...

    def discard(self, package: Package) -> None:
        """Lets go of a package that will not be submitted."""
        ...

    def submit(self, names: Sequence[str], packages: Sequence[Package]) -> Sequence[str]:
        """Sends a group, whole or not at all, and gives the remote ids in its order.

        An error means unknown, never failed; but for `Refused` and `Unreachable`, after which
        nothing was sent.
        """
        ...

    def find(self, sought: Sought) -> str | None:
        """The remote id of the task of that name, or None when the place has none."""
        ...

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, Standing]:
        """How each task stands; as few calls as the place allows."""
        ...

    def results(self, sent: Sent) -> Iterator[Chunk]:
        """What can be landed now. A chunk is given again until the next one is asked for."""
        ...

    def bill(self, remote_id: str) -> Bill | None:
        """What the task cost, once all its results were given; None where nothing is billed."""
        ...

    def report(self, remote_id: str) -> Report | None:
        """What the far side told of the task, once all its results were given, if it tells."""
        ...

    def cancel(self, remote_id: str) -> None:
        """Asks the place to end the task; what it has answered can still be fetched."""
        ...

    def forget(self, remote_id: str) -> None:
        """Lets go of what is kept of a task here: all of it has landed."""
        ...

    def ends_here(self, remote_id: str | None) -> bool:
        """Whether the task ends with the process that sent it, so that a stopped run gives it up.

        None asks for a task that has no id yet.
        """
        ...

    def wait(self, seconds: float) -> None:
        """Returns when there may be something new here, at the latest after `seconds`."""
        ...

    def close(self) -> None:
        """Lets go of what the place holds in this process."""
        ...


def array_of(name: str) -> tuple[str, int]:
    """The name of the group that a task was sent in, and its index there.

    The tasks of a group of several are named `<group>_<index>`; one alone has the group's name.
    """
    element = _ELEMENT.fullmatch(name)
    return (element[1], int(element[2])) if element else (name, 0)
