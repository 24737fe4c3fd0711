"""Adopt: open tasks that have ended are landed, booked and closed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from ..errors import OverCap, ProviderError, RecipesError, Refused, Unreachable
from ..ledger.tasks import TaskRow, TaskState
from ..places.place import Chunk, Standing, State
from .bills import booking_of
from .causes import note_over_cap
from .engine import Engine
from .land import TaskPages, land_chunk
from .pausing import pause_place
from .records import keep_record
from .standing import standings
from .work import sent_task

__all__ = ["Adopted", "adopt", "close", "drop_failed", "give_up", "land"]

STOPPED = "stopped before it ended"

# Results that could not be fetched so often wait for a person; they are never sent again.
FETCHES = 5
# Seconds after the first of these failures; each later one waits so much longer.
FETCH_PAUSE = 15.0


@dataclass
class Adopted:
    """What became of tasks: rows landed, tasks still open, why one failed or is held."""

    landed: int = 0
    open: list[TaskRow] = field(default_factory=list[TaskRow])
    failure: str | None = None


def adopt(engine: Engine, tasks: Sequence[TaskRow]) -> Adopted:
    """Asks the places about open tasks, lands what has ended and closes it."""
    adopted = Adopted()
    stand = standings(engine, tasks)
    for task in tasks:
        standing = stand[task.id]
        if standing.state is State.LOST:
            engine.ledger.tasks.dropped(task.id, standing.words)
            continue
        if task.remote_id is None:  # it may just have been found
            task = engine.ledger.tasks.get(task.id) or task
        if task.held:
            adopted.failure = task.held
            adopted.open.append(task)
            continue
        try:
            _adopt(engine, task, standing, adopted)
        except OverCap as over:
            _capped(engine, task, over, adopted)
    return adopted


def _adopt(engine: Engine, task: TaskRow, standing: Standing, adopted: Adopted) -> None:
    if standing.state is State.FAILED:
        _failed(engine, task, standing, adopted)
    elif standing.state is State.RUNNING:
        if task.remote_id and engine.place(task.place).ends_here(task.remote_id):
            adopted.landed += _land_so_far(engine, task)
        adopted.open.append(task)
    else:
        _ended(engine, task, adopted)


def _capped(engine: Engine, task: TaskRow, over: OverCap, adopted: Adopted) -> None:
    """A live call of a task that lands would pass a cap: it goes on when there is room again."""
    engine.fetch_again[task.id] = time.monotonic() + FETCH_PAUSE
    adopted.open.append(task)
    note_over_cap(engine, task.recipe, over)
    if over.for_good:
        adopted.failure = f"{task.recipe}/{task.stage} cannot land all of its answers. {over}."


def _failed(engine: Engine, task: TaskRow, standing: Standing, adopted: Adopted) -> None:
    place = engine.place(task.place)
    if standing.account:
        refused = Refused(standing.words, account=True, retry_after=standing.retry_after)
        pause_place(engine, task.place, refused)
        engine.ledger.tasks.dropped(task.id, standing.words)
        return
    if task.remote_id is not None:
        with suppress(ProviderError):  # it has failed, so there is nothing left that must end
            place.cancel(task.remote_id)
    drop_failed(engine, task, standing.words)
    adopted.failure = standing.words


def drop_failed(engine: Engine, task: TaskRow, words: str) -> None:
    """Lets go of a task that failed as a whole: what it finished lands, what it cost is booked,
    and its other pages are free. None of them is to blame.
    """
    with suppress(ProviderError):
        pages = TaskPages.of(task)
        for chunk in engine.place(task.place).results(sent_task(engine, task)):
            done = [outcome for outcome in chunk.outcomes if outcome.failure is None]
            land_chunk(engine, task, Chunk(chunk.part, done), pages)
        book(engine, task)
        _tell(engine, task)
    keep_record(engine, task, words)
    engine.ledger.tasks.dropped(task.id, words)
    engine.place(task.place).forget(task.remote_id or "")


def _ended(engine: Engine, task: TaskRow, adopted: Adopted) -> None:
    if time.monotonic() < engine.fetch_again.get(task.id, 0.0):
        adopted.open.append(task)
        return
    try:
        adopted.landed += land(engine, task)
    except Unreachable as error:  # no fault of the results
        pause_place(engine, task.place, error)
        adopted.open.append(task)
    except ProviderError as error:
        adopted.open.append(task)
        failed = engine.ledger.tasks.fetch_failed(task.id)
        engine.fetch_again[task.id] = time.monotonic() + FETCH_PAUSE * failed
        if failed >= FETCHES:
            words = (
                f"The results of {task.remote_id} at {task.place} could not be fetched {FETCHES} "
                f"times: {error} They are not asked for anew; when they can be fetched, run: "
                f"recipes retry {task.recipe}"
            )
            engine.ledger.tasks.hold(task.id, words)
            adopted.failure = words
    else:
        if engine.ledger.tasks.is_open(task.id):
            close(engine, task)
        else:  # another process was first, and its record is the whole one
            engine.place(task.place).forget(task.remote_id or "")


def land(engine: Engine, task: TaskRow) -> int:
    """Lands what the task can give now; gives how many rows landed."""
    if task.remote_id is None:
        return 0
    place = engine.place(task.place)
    pages = TaskPages.of(task)
    with closing(place.results(sent_task(engine, task))) as chunks:  # pyright: ignore[reportArgumentType]
        return sum(land_chunk(engine, task, chunk, pages) for chunk in chunks)


def _land_so_far(engine: Engine, task: TaskRow) -> int:
    """Lands what a task of this process has given by now, and books it."""
    landed = land(engine, task)
    if landed:
        book(engine, task, final=False)
    return landed


def close(engine: Engine, task: TaskRow) -> None:
    """The task has ended and all it gave has landed: it is booked, and its row is closed."""
    if task.state is not TaskState.ended:
        engine.ledger.tasks.ended(task.id)
    for step in task.fingerprints:
        engine.library.compact(task.recipe, step, task.batch)
    book(engine, task)
    _tell(engine, task)
    keep_record(engine, task)
    engine.ledger.tasks.landed(task.id)
    engine.place(task.place).forget(task.remote_id or "")


def book(engine: Engine, task: TaskRow, *, final: bool = True) -> None:
    """Books what the task cost so far. `final`: more will not come."""
    bill = engine.place(task.place).bill(task.remote_id or "")
    if bill is None:
        return
    engine.ledger.bookings.book(booking_of(task, bill), final=final)


def _tell(engine: Engine, task: TaskRow) -> None:
    """Keeps what the far side told of the task, and passes it on to whoever listens."""
    report = engine.place(task.place).report(task.remote_id or "")
    if report is None:
        return
    engine.ledger.tasks.reported(task.id, report.facts)
    if engine.on_report is not None:
        engine.on_report(task, report)


def give_up(engine: Engine, task: TaskRow) -> None:
    """Ends a task of this process: what it finished lands, the rest is free to be done again."""
    if task.remote_id is not None:
        engine.place(task.place).cancel(task.remote_id)
        try:
            land(engine, task)
            book(engine, task)
            _tell(engine, task)
            keep_record(engine, task, STOPPED)
        except OverCap:
            return  # what it was answered is kept, and lands when there is room under the cap
        except RecipesError:
            pass  # the first error is the one to be told
    engine.ledger.tasks.dropped(task.id, STOPPED)
    engine.place(task.place).forget(task.remote_id or "")
