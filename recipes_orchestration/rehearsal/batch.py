"""One batch at a rehearsed provider: how it goes on, how it ends, what its lines are."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic_core import from_json

from .answers import Asked
from .bodies import Lines
from .fates import Fate, fate_of, goes_by_hash
from .script import Script

__all__ = ["Batch", "End", "Phase", "mended", "result_lines"]


class Phase(StrEnum):
    """How far a batch is."""

    RUNNING = "running"
    CANCELLING = "cancelling"
    ENDED = "ended"


class End(StrEnum):
    """How a batch ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass
class Batch:
    """A batch and all that happened to it. `ask` reads one request of it."""

    id: str
    name: str
    lines: Lines
    script: Script
    ask: Callable[[Lines, int], Asked]
    model: str = ""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    reads: int = 0
    cancelled: datetime | None = None
    ended: datetime | None = None
    end: End | None = None
    fates: list[Fate] = field(default_factory=list[Fate])
    tally: Counter[Fate] = field(default_factory=Counter[Fate])
    deleted: bool = False
    doomed: bool = False  # accepted, but it will fail validation

    @property
    def size(self) -> int:
        """How many requests it holds."""
        return len(self.lines)

    def look(self, *, read: bool = True) -> Phase:
        """How far it is; a status read counts, and may be the one that sees it done."""
        if self.end is not None:
            return Phase.ENDED
        self.reads += read
        now = datetime.now(UTC)
        if self.cancelled is not None:
            if (now - self.cancelled).total_seconds() < self.script.cancel_seconds:
                return Phase.CANCELLING
            self.finish(End.CANCELLED)
            return Phase.ENDED
        if self.doomed:
            self.finish(End.FAILED)
            return Phase.ENDED
        waits = (now - self.created).total_seconds() < self.script.delay_seconds
        if waits or self.script.never_ends or self.reads <= self.script.polls:
            return Phase.RUNNING
        self.finish()
        return Phase.ENDED

    def cancel(self) -> None:
        """Asks for its end; nothing happens when it has ended or was asked before."""
        if self.end is None and self.cancelled is None:
            self.cancelled = datetime.now(UTC)

    def finish(self, end: End | None = None) -> None:
        """Ends it at once, as its script says unless an end is given."""
        if self.end is not None:
            return
        if end is None:
            expires = self.script.expire_after is not None
            failed = self.script.fail_validation or self.doomed
            end = End.FAILED if failed else End.EXPIRED if expires else End.COMPLETED
        self.fates = self._fates(end)
        self.tally = Counter(self.fates)
        self.end = end
        self.ended = datetime.now(UTC)

    def count(self, *fates: Fate) -> int:
        """How many requests ended in one of these ways."""
        return sum(self.tally[fate] for fate in fates)

    @property
    def answered(self) -> int:
        """How many requests got a response, whatever it is worth."""
        return sum(count for fate, count in self.tally.items() if fate.answered)

    def _fates(self, end: End) -> list[Fate]:
        script, size = self.script, self.size
        if end is End.FAILED:
            return []
        if end is End.CANCELLED and script.cancel_lines is not None:
            good = min(script.cancel_lines.output, size)
            bad = min(script.cancel_lines.error, size - good)
            rest = size - good - bad
            return [
                *([Fate.SUCCEEDED] * good),
                *([Fate.ERRORED] * bad),
                *([Fate.CANCELLED] * rest),
            ]
        done, unanswered = size, Fate.EXPIRED
        if end is End.EXPIRED:
            done = min(size if script.expire_after is None else script.expire_after, size)
        if end is End.CANCELLED:
            done, unanswered = min(script.answered_before_cancel, size), Fate.CANCELLED
        return [*self._worked_on(done), *([unanswered] * (size - done))]

    def _worked_on(self, done: int) -> list[Fate]:
        if self.script.output_null:
            return [Fate.ERRORED] * done
        if goes_by_hash(self.script):
            fates = [
                fate_of(self.script, self.ask(self.lines, number).digest) for number in range(done)
            ]
        else:
            fates = [fate_of(self.script, "0" * 8)] * done
        for number in range(min(done, self.script.error_lines + self.script.status_400_lines)):
            errs = number < self.script.error_lines
            fates[number] = Fate.ERRORED if errs else Fate.STATUS_400
        return fates


def result_lines(
    batch: Batch,
    render: Callable[[int], bytes | None],
    foreign: Callable[[str], bytes] | None = None,
) -> Iterator[bytes]:
    """The lines of a result file with their line ends, each made when it is asked for.

    `render` makes the line of one request, or None when the file has no line for it; `foreign`
    makes a line for an id that was never sent.
    """
    script = batch.script
    kept = range(batch.size - min(script.missing, batch.size))
    order = [*kept, *kept[: script.duplicate_lines]]
    if script.permute:
        random.Random(batch.size).shuffle(order)  # noqa: S311
    place = 0
    for number in order:
        line = render(number)
        if line is not None:
            yield (_spoiled(place, line) if script.malformed else line) + b"\n"
            place += 1
    if foreign is not None:
        for number in range(script.foreign_lines):
            yield foreign(f"never-sent-{number}") + b"\n"


def _spoiled(place: int, line: bytes) -> bytes:
    if place == 0:
        return line[: len(line) // 2]
    if place == 1:
        return line[: len(line) // 2] + b"\xff\xfe" + line[len(line) // 2 :]
    return b"null" if place == 2 else line


def mended(raw: bytes) -> Any:
    """The JSON of one request; an empty object where it is none."""
    try:
        found = from_json(raw)
    except ValueError:
        found = _forgiving(raw)
    return found if isinstance(found, dict) else {}


def _forgiving(raw: bytes) -> Any:
    # Python's reader takes half a surrogate pair, as the providers do; the fast one does not.
    try:
        return json.loads(raw)
    except ValueError:
        return {}
