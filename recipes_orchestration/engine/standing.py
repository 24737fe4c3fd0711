"""How open tasks stand: asked at their places, found there by name if need be."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from ..errors import ProviderError, RecipesError, Unreachable
from ..ledger.tasks import TaskHead, TaskRow
from ..places.place import Place, Standing, State
from ..places.processes import process_lives
from .beat import BEAT_EVERY
from .engine import Engine
from .pausing import pause_place
from .send import sought

__all__ = ["FORGOTTEN", "LOST_AFTER", "OVERDUE", "AnyTask", "standings"]

LOST_AFTER = 180.0
"""A task of a process elsewhere counts as lost when its heartbeat is so old, in seconds."""

OVERDUE, FORGOTTEN = "overdue", "forgotten"
"""Why a task was stopped: its time was over; its place did not know it any more."""

# A place that was asked to end an overdue task is given so long, in seconds.
ENDING_SECONDS = 7200.0

AnyTask: TypeAlias = TaskHead | TaskRow


def standings(engine: Engine, tasks: Iterable[AnyTask]) -> dict[str, Standing]:
    """How each open task stands, by its id: one call a place for those that it knows by id.

    Never UNKNOWN: where a place cannot tell, the task's owner decides. A place that cannot be
    opened or reached leaves its tasks RUNNING, with the reason as words. Overdue tasks are ended
    on the way.
    """
    answer: dict[str, Standing] = {}
    by_place: dict[str, list[AnyTask]] = defaultdict(list)
    for task in tasks:
        if task.held:
            answer[task.id] = Standing(State.RUNNING, task.held)
        else:
            by_place[task.place].append(task)
    for name, here in by_place.items():
        try:
            place = engine.place(name)
        except RecipesError as error:  # such as a key that is not set here
            answer.update((task.id, Standing(State.RUNNING, str(error))) for task in here)
            continue
        ids: dict[str, str] = {}
        for task in here:
            remote_id = task.remote_id or _found(engine, place, task, answer)
            if remote_id is not None:
                ids[task.id] = remote_id
        told = _ask(engine, place, set(ids.values()))
        for task in here:
            if task.id in ids:
                answer[task.id] = _judged(engine, place, task, ids[task.id], told[ids[task.id]])
    return answer


def _ask(engine: Engine, place: Place, remote_ids: set[str]) -> Mapping[str, Standing]:
    if not remote_ids:
        return {}
    try:
        told = place.statuses(remote_ids)
    except RecipesError as error:
        return dict.fromkeys(remote_ids, _unanswered(engine, place, error))
    engine.ledger.pauses.reached(place.name)
    return told


def _unanswered(engine: Engine, place: Place, error: RecipesError) -> Standing:
    """A place that could not be asked; one whose connection a person must open is paused."""
    if isinstance(error, Unreachable) and error.connect:
        pause_place(engine, place.name, error)
    return Standing(State.RUNNING, str(error))


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
        answer[task.id] = _unanswered(engine, place, error)
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
    if standing.state is State.LOST and not ends_here:
        return _forgotten(engine, place, task, remote_id, standing)
    if standing.state is State.RUNNING and ends_here and task.owner == engine.owner:
        if _age(task) > BEAT_EVERY:
            engine.ledger.tasks.beat([task.id], engine.owner)
    elif standing.state is State.RUNNING and place.overdue_seconds is not None and not ends_here:
        return _in_time(engine, place, task, remote_id, standing)
    return standing


def _forgotten(
    engine: Engine, place: Place, task: AnyTask, remote_id: str, standing: Standing
) -> Standing:
    """A batch that its place took and does not know: lost only when a person has looked at it.

    The key of another account makes every batch look so, and sending them all again would be paid
    for twice.
    """
    if _sent_for(task) < place.settle_seconds:
        return Standing(State.RUNNING, f"{place.name} does not show it yet: {standing.words}")
    kept = place.keeps_seconds
    if task.stopped == FORGOTTEN or (kept is not None and _sent_for(task) > kept):
        return standing
    words = (
        f"{place.name} took {remote_id} and does not know it now: {standing.words}. See whether "
        "the key is that of the same account. What was sent is not sent again by itself; run: "
        f"recipes retry {task.recipe}"
    )
    engine.ledger.tasks.stopped(task.id, FORGOTTEN)
    engine.ledger.tasks.hold(task.id, words)
    return Standing(State.RUNNING, words)


def _in_time(
    engine: Engine, place: Place, task: AnyTask, remote_id: str, standing: Standing
) -> Standing:
    """Ends a task whose time is over; one that will not end waits for a person."""
    assert place.overdue_seconds is not None
    if task.stopped_at is not None and task.stopped != FORGOTTEN:
        if (datetime.now(UTC) - task.stopped_at).total_seconds() > ENDING_SECONDS:
            words = (
                f"{place.name} was asked to end {remote_id} at {task.stopped_at:%Y-%m-%d %H:%M} "
                f"UTC and has not: {standing.words}. Look at it there, then run: "
                f"recipes retry {task.recipe}"
            )
            engine.ledger.tasks.hold(task.id, words)
        return standing
    if _sent_for(task) > place.overdue_seconds:
        engine.ledger.tasks.stopped(task.id, OVERDUE)
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
