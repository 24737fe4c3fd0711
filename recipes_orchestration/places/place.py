"""What every place can do: take a task, say how it stands, give its results, end it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ..runner.work import Outcome, TaskSpec

__all__ = ["Chunk", "Place", "State"]


class State(StrEnum):
    """How a task stands at its place."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"  # the task as a whole; its pages are not to blame
    LOST = "lost"  # the place is sure that nothing works on it any more
    UNKNOWN = "unknown"  # the place cannot tell from here


@dataclass(frozen=True)
class Chunk:
    """Outcomes that land together as one file a step; `part` counts from 1 within the task."""

    part: int
    outcomes: Sequence[Outcome]


class Place(Protocol):
    """Where steps run. All calls may be made at any moment and any number of times."""

    name: str
    # Whether a task ends with the process that sent it, so that a run that stops gives it up.
    in_process: bool

    def submit(self, task: TaskSpec) -> str:
        """Sends the task and gives its remote id. An error means unknown, never failed."""
        ...

    def find(self, name: str) -> str | None:
        """The remote id of the task of that name, or None when the place has none."""
        ...

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, tuple[State, str]]:
        """How each task stands, with words for a person; as few calls as the place allows."""
        ...

    def results(self, remote_id: str) -> Iterator[Chunk]:
        """What can be landed now. A chunk is given again until the next one is asked for."""
        ...

    def cancel(self, remote_id: str) -> None:
        """Asks the place to end the task; what it has answered can still be fetched."""
        ...

    def wait(self, seconds: float) -> None:
        """Returns when there may be something new here, at the latest after `seconds`."""
        ...

    def close(self) -> None:
        """Lets go of what the place holds in this process."""
        ...
