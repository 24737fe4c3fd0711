"""The plain tasks of a provider's place: those of this process, and what dead ones left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ...errors import OverCap
from ...providers.provider import Provider
from ...runner.work import Failure, FailureKind, Outcome
from ..measures import Measures
from ..place import Bill, Chunk, Report, Sent, Standing, State
from ..processes import process_lives, this_process
from .answer_chunks import all_outcomes, chunks
from .answering import Reading
from .plain_calls import Journal, PlainTask
from .spool import SpoolPart

__all__ = ["PlainTasks", "is_plain"]

_PLAIN = "plain/"


def is_plain(remote_id: str) -> bool:
    """Whether a task of that id is one of plain calls."""
    return remote_id.startswith(_PLAIN)


@dataclass
class _Kept:
    """What has been read of a task of this process."""

    reading: Reading
    measures: Measures
    parts: int = 0
    settled: bool = False


@dataclass
class PlainTasks:
    """Tasks of plain calls. Their ids name the process that makes the calls.

    `folder` has a journal for each, on this machine, until its answers are in the library.
    `land_every_pages` and `land_every_seconds` say when answers that came are landed.
    """

    provider: Provider
    folder: Path
    parallel: int
    land_every_pages: int
    land_every_seconds: float
    _tasks: dict[str, PlainTask] = field(default_factory=dict[str, PlainTask])
    _kept: dict[str, _Kept] = field(default_factory=dict[str, _Kept])
    _bills: dict[str, Bill] = field(default_factory=dict[str, Bill])
    _news: threading.Event = field(default_factory=threading.Event)
    _here: str = field(default_factory=lambda: f"{_PLAIN}{this_process()}/{uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        Journal.sweep(self.folder)

    def start(self, name: str, part: SpoolPart) -> str:
        """Begins the calls and gives the task's id."""
        remote_id = f"{self._here}/{name}"
        journal = Journal(self.folder, name)
        task = PlainTask(remote_id, self.provider, part, journal, self.parallel, self._news)
        journal.begin(remote_id)
        self._tasks[remote_id] = task
        task.start()
        return remote_id

    def uses(self, part: SpoolPart) -> bool:
        """Whether calls are being made from it."""
        return any(task.part is part for task in self._tasks.values())

    def find(self, name: str) -> str | None:
        """The id of the task of that name, here or in a journal of this machine."""
        here = f"{self._here}/{name}"
        return here if here in self._tasks else Journal(self.folder, name).remote_id()

    def standing(self, remote_id: str) -> Standing:
        """How a task stands. One of a dead process of this machine has ended if it was answered."""
        task = self._tasks.get(remote_id)
        if task is not None:
            if task.ended and not task.ready:
                return Standing(State.ENDED)
            return Standing(State.RUNNING, f"{task.left} calls left")
        if remote_id.rpartition("/")[0] == self._here:
            return Standing(State.LOST, "it was given up here")
        process, name = _process_and_name(remote_id)
        lives = process_lives(process)
        if lives and process != this_process():
            return Standing(State.RUNNING, "in another process")
        if Journal(self.folder, name).remote_id() == remote_id:
            return Standing(State.ENDED, "its process ended; what it was answered is kept")
        if lives is None:
            return Standing(State.UNKNOWN, "it runs where this process cannot look")
        return Standing(State.LOST, "its process ended")

    def results(self, sent: Sent, new_reading: Callable[[Sent], Reading]) -> Iterator[Chunk]:
        """What has been answered since, when enough has come; all that a dead process left."""
        task = self._tasks.get(sent.remote_id)
        if task is None:
            yield from self._orphaned(sent, new_reading)
            return
        with task.lock:
            ended, lines, failed = task.ended, list(task.ready), dict(task.failed)
        if self._due(task, len(lines) + len(failed), ended):
            if sent.remote_id not in self._kept:
                measures = Measures({sent.spec.steps[0].name: len(sent.calls)})
                self._kept[sent.remote_id] = _Kept(new_reading(sent), measures)
            kept = self._kept[sent.remote_id]
            if ended and not kept.settled:
                kept.reading.settle(task.journal.lines())
                kept.settled = True
            outcomes, read, over = _read(sent, task, kept.reading, lines)
            if over is None:
                outcomes += _unanswered(sent, task, failed)
            if outcomes:
                yield Chunk(kept.parts + 1, outcomes)
                kept.parts += 1
                kept.measures.add(outcomes)
            with task.lock:
                del task.ready[:read]
                for call_id in failed if over is None else ():
                    task.failed.pop(call_id, None)
                task.landed_at = time.monotonic()
            if over is not None:
                raise over
        if ended and not task.ready and not sent.answers.kept():
            sent.answers.keep(task.journal.lines())

    def bill(self, remote_id: str) -> Bill | None:
        """What the task cost so far."""
        kept = self._kept.get(remote_id)
        return self._bills.get(remote_id) if kept is None else kept.reading.bill()

    def report(self, remote_id: str) -> Report | None:
        """What the calls of a task of this process took."""
        kept = self._kept.get(remote_id)
        return None if kept is None else Report(kept.measures.facts())

    def cancel(self, remote_id: str) -> None:
        """Calls that have not begun are left; those on their way are paid, and waited for."""
        task = self._tasks.get(remote_id)
        if task is None:
            return
        task.cancelled = True
        while not task.ended:
            self._news.wait(0.1)
            self._news.clear()

    def forget(self, remote_id: str) -> None:
        """Lets go of a task whose answers are in the library."""
        if not is_plain(remote_id):
            return
        Journal(self.folder, _process_and_name(remote_id)[1]).remove()
        self._tasks.pop(remote_id, None)
        self._kept.pop(remote_id, None)
        self._bills.pop(remote_id, None)

    def wait(self, seconds: float) -> None:
        """Returns when a call was answered, at the latest after `seconds`."""
        if all(task.ended for task in self._tasks.values()):
            time.sleep(seconds)
        else:
            self._news.wait(seconds)
            self._news.clear()

    def close(self) -> None:
        """Leaves the calls that have not begun; the journals stay for the next process."""
        for remote_id in list(self._tasks):
            self.cancel(remote_id)
        self._tasks.clear()

    def _due(self, task: PlainTask, rows: int, ended: bool) -> bool:
        return (
            ended
            or rows >= self.land_every_pages
            or (rows > 0 and time.monotonic() - task.landed_at >= self.land_every_seconds)
        )

    def _orphaned(self, sent: Sent, new_reading: Callable[[Sent], Reading]) -> Iterator[Chunk]:
        """What a process that died was answered; pages without an answer stay to do."""
        if not sent.answers.kept():
            sent.answers.keep(Journal(self.folder, sent.name).lines())
        reading = new_reading(sent)
        reading.settle_kept()
        reading.ended = False
        yield from chunks(all_outcomes(reading, sent))
        self._bills[sent.remote_id] = reading.bill()


def _process_and_name(remote_id: str) -> tuple[str, str]:
    rest, _, name = remote_id.removeprefix(_PLAIN).rpartition("/")
    return rest.partition("/")[0], name


def _read(
    sent: Sent, task: PlainTask, reading: Reading, lines: Sequence[bytes]
) -> tuple[list[Outcome], int, OverCap | None]:
    """The outcomes of lines, and of how many; fewer where a live call would pass a cap."""
    outcomes: list[Outcome] = []
    for read, line in enumerate(lines):
        try:
            outcomes += _timed(sent, task, reading.outcomes([line]))
        except OverCap as over:
            return outcomes, read, over
    return outcomes, len(lines), None


def _timed(sent: Sent, task: PlainTask, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes with the seconds of their calls: of several of one call, the first has them."""
    for outcome in outcomes:
        seconds = task.took.pop(sent.calls[outcome.page_id], 0.0)
        yield outcome._replace(seconds=seconds)


def _unanswered(sent: Sent, task: PlainTask, failed: Mapping[str, str]) -> Iterator[Outcome]:
    """Calls that failed after the SDK's own retries, and the refusal that ended the task."""
    step = sent.spec.steps[0].name
    for page_id, call_id in sent.calls.items():
        if call_id in failed:
            failure = Failure(FailureKind.ERRORED, failed[call_id])
            yield Outcome(page_id, step, 0.0, failure=failure)
    if task.refused is not None and task.ended:
        failure = Failure(FailureKind.ACCOUNT, str(task.refused))
        yield Outcome(next(iter(sent.calls)), step, 0.0, failure=failure)
