"""Adopt: each open task is asked about at its place, found by name if need be, and landed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ..errors import ProviderError, RecipesError
from ..ledger.bookings import Booking
from ..ledger.tasks import TaskHead, TaskRow, TaskState
from ..places.place import Place, Standing, State
from ..places.processes import process_lives
from .beat import BEAT_EVERY
from .engine import Engine
from .land import TaskPages, land_chunk
from .send import sought
from .work import sent_task

__all__ = ["LOST_AFTER", "Adopted", "adopt", "close", "give_up", "land", "standings"]

# A task of a process on another machine counts as lost when its heartbeat is this old, in seconds.
LOST_AFTER = 180.0
# Results that could not be fetched so often wait for a person; they are never sent again.
FETCHES = 5
# Seconds after the first of these failures; each later one waits so much longer.
FETCH_PAUSE = 15.0
# A place that was asked to end an overdue task is given so long, in seconds.
ENDING_SECONDS = 7200.0

AnyTask = TaskHead | TaskRow


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
        elif standing.state is State.FAILED:
            _failed(engine, task, standing, adopted)
        elif standing.state is State.RUNNING:
            if task.remote_id and engine.place(task.place).ends_here(task.remote_id):
                adopted.landed += land(engine, task)
            adopted.open.append(task)
        else:
            _ended(engine, task, adopted)
    return adopted


def standings(engine: Engine, tasks: Iterable[AnyTask]) -> dict[str, Standing]:
    """How each open task stands, by its id: one call a place for those that it knows by id.

    Never UNKNOWN: where a place cannot tell, the task's owner decides. A place that cannot be
    reached leaves its tasks RUNNING, with the reason as words. Overdue tasks are ended on the way.
    """
    answer: dict[str, Standing] = {}
    by_place: dict[str, list[AnyTask]] = defaultdict(list)
    for task in tasks:
        if task.held:
            answer[task.id] = Standing(State.RUNNING, task.held)
        else:
            by_place[task.place].append(task)
    for name, here in by_place.items():
        place = engine.place(name)
        ids: dict[str, str] = {}
        for task in here:
            remote_id = task.remote_id or _found(engine, place, task, answer)
            if remote_id is not None:
                ids[task.id] = remote_id
        told = _ask(place, set(ids.values()))
        for task in here:
            if task.id in ids:
                answer[task.id] = _judged(engine, place, task, ids[task.id], told[ids[task.id]])
    return answer


def _ask(place: Place, remote_ids: set[str]) -> Mapping[str, Standing]:
    if not remote_ids:
        return {}
    try:
        return place.statuses(remote_ids)
    except ProviderError as error:
        return dict.fromkeys(remote_ids, Standing(State.RUNNING, str(error)))


def _found(engine: Engine, place: Place, task: AnyTask, answer: dict[str, Standing]) -> str | None:
    """The id of a task that has none here: its reply was lost, or it was never sent."""
    if (words := _at_work(engine, task)) is not None:
        answer[task.id] = Standing(State.RUNNING, words)
        return None
    left = place.settle_seconds - _age(task)
    if left > 0:
        words = f"It may have been accepted: {place.name} is asked for it by name in {left:.0f} s."
        answer[task.id] = Standing(State.RUNNING, words)
        return None
    if task.owner != engine.owner and not engine.ledger.tasks.steal(
        task.id, engine.owner, task.heartbeat_at
    ):
        answer[task.id] = Standing(State.RUNNING, "Another process looks for it.")
        return None
    row = task if isinstance(task, TaskRow) else engine.ledger.tasks.get(task.id)
    if row is None:
        answer[task.id] = Standing(State.LOST, "its row is gone")
        return None
    try:
        remote_id = place.find(sought(engine, row))
    except ProviderError as error:
        answer[task.id] = Standing(State.RUNNING, str(error))
        return None
    if remote_id is None:
        answer[task.id] = Standing(State.LOST, f"{place.name} never had it")
        return None
    engine.ledger.tasks.sent(task.id, remote_id)
    return remote_id


def _at_work(engine: Engine, task: AnyTask) -> str | None:
    """Words when the task's owner is another process that is sending it at this moment."""
    if task.owner == engine.owner:
        return None
    lives = process_lives(task.owner.partition("/")[0])
    if lives is False or _age(task) > LOST_AFTER:
        return None
    return "Another process is sending it."


def _judged(
    engine: Engine, place: Place, task: AnyTask, remote_id: str, standing: Standing
) -> Standing:
    if standing.state is State.UNKNOWN:
        return _by_owner(engine, task, standing.words)
    ends_here = place.ends_here(remote_id)
    if standing.state is State.LOST and not ends_here and _sent_for(task) < place.settle_seconds:
        return Standing(State.RUNNING, f"{place.name} does not show it yet: {standing.words}")
    if standing.state is State.RUNNING and ends_here and task.owner == engine.owner:
        if _age(task) > BEAT_EVERY:
            engine.ledger.tasks.beat([task.id], engine.owner)
    elif standing.state is State.RUNNING and place.overdue_seconds is not None and not ends_here:
        return _in_time(engine, place, task, remote_id, standing)
    return standing


def _in_time(
    engine: Engine, place: Place, task: AnyTask, remote_id: str, standing: Standing
) -> Standing:
    """Ends a task whose time is over; one that will not end waits for a person."""
    assert place.overdue_seconds is not None
    if task.stopped_at is not None:
        if (datetime.now(UTC) - task.stopped_at).total_seconds() > ENDING_SECONDS:
            words = (
                f"{place.name} was asked to end {remote_id} at {task.stopped_at:%Y-%m-%d %H:%M} "
                f"UTC and has not: {standing.words}. Look at it there, then run: "
                f"recipes retry {task.recipe}"
            )
            engine.ledger.tasks.hold(task.id, words)
        return standing
    if _sent_for(task) > place.overdue_seconds:
        engine.ledger.tasks.stopped(task.id, "overdue")
        try:
            place.cancel(remote_id)
        except ProviderError as error:
            return Standing(State.RUNNING, f"It is overdue and could not be ended: {error}")
    return standing


def _by_owner(engine: Engine, task: AnyTask, words: str) -> Standing:
    """Where the place cannot tell: the owner is at work on it, or dead, or has gone quiet."""
    if (
        task.owner == engine.owner
        or process_lives(task.owner.partition("/")[0]) is False
        or _age(task) > LOST_AFTER
    ):
        return Standing(State.LOST, words)
    return Standing(State.RUNNING, words)


def _age(task: AnyTask) -> float:
    return time.time() - (task.heartbeat_at or task.created_at).timestamp()


def _sent_for(task: AnyTask) -> float:
    return (datetime.now(UTC) - (task.sent_at or task.created_at)).total_seconds()


def _failed(engine: Engine, task: TaskRow, standing: Standing, adopted: Adopted) -> None:
    place = engine.place(task.place)
    if standing.account:
        until = None
        if standing.retry_after is not None:
            until = datetime.now(UTC) + timedelta(seconds=standing.retry_after)
        engine.ledger.pauses.pause(task.place, standing.words, until)
        engine.ledger.tasks.dropped(task.id, standing.words)
        return
    if task.remote_id is not None:
        place.cancel(task.remote_id)
    engine.ledger.tasks.dropped(task.id, standing.words)
    adopted.failure = standing.words


def _ended(engine: Engine, task: TaskRow, adopted: Adopted) -> None:
    if time.monotonic() < engine.fetch_again.get(task.id, 0.0):
        adopted.open.append(task)
        return
    try:
        adopted.landed += land(engine, task)
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
        return
    close(engine, task)


def land(engine: Engine, task: TaskRow) -> int:
    """Lands what the task can give now; gives how many rows landed."""
    if task.remote_id is None:
        return 0
    place = engine.place(task.place)
    pages = TaskPages.of(task)
    chunks = place.results(sent_task(engine, task))
    return sum(land_chunk(engine, task, chunk, pages) for chunk in chunks)


def close(engine: Engine, task: TaskRow) -> None:
    """The task has ended and all it gave has landed: it is booked, and its row is closed."""
    if task.state is not TaskState.ended:
        engine.ledger.tasks.ended(task.id)
    for step in task.fingerprints:
        engine.library.compact(task.recipe, step, task.batch)
    book(engine, task)
    engine.ledger.tasks.landed(task.id)
    engine.place(task.place).forget(task.remote_id or "")


def book(engine: Engine, task: TaskRow) -> None:
    """Books what the task cost; a task is booked once."""
    bill = engine.place(task.place).bill(task.remote_id or "")
    if bill is None:
        return
    engine.ledger.bookings.book(
        Booking(
            task_id=task.id,
            recipe=task.recipe,
            step=next(iter(task.fingerprints)),
            batch=task.batch,
            place=task.place,
            model=bill.model,
            mode=bill.mode,
            basis=bill.basis,
            landed_usd=bill.landed_usd,
            wasted_usd=bill.wasted_usd,
            tokens_in=bill.tokens_in,
            tokens_out=bill.tokens_out,
            tokens_cached=bill.tokens_cached,
            lines=dict(bill.lines),
            booked_at=datetime.now(UTC),
        )
    )


def give_up(engine: Engine, task: TaskRow) -> None:
    """Ends a task of this process: what it finished lands, the rest is free to be done again."""
    if task.remote_id is not None:
        engine.place(task.place).cancel(task.remote_id)
        try:
            land(engine, task)
            book(engine, task)
        except RecipesError:
            pass  # the first error is the one to be told
    engine.ledger.tasks.dropped(task.id, "stopped before it ended")
    engine.place(task.place).forget(task.remote_id or "")
