"""`advance`: one look at a stage of a batch, and whatever can be done about it now."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from ..errors import PlaceError, RecipesError
from ..ledger.tasks import TaskRow
from ..places.place import State
from ..places.processes import process_lives
from ..runner.work import FailureKind
from ..stages import Stage
from .engine import Engine
from .land import land_chunk
from .look import BatchView, PageState, look
from .reuse import reuse_results
from .send import send

__all__ = ["Seen", "advance", "give_up", "run_stage"]

# A task of a process on another machine counts as lost when its heartbeat is this old, in seconds.
LOST_AFTER = 180.0
BEAT_EVERY = 10.0


@dataclass(frozen=True)
class Seen:
    """What `advance` saw and did.

    `view` is the batch as it stands, or None while tasks are open and nothing else was looked
    at. `landed` counts the rows that landed in this call, `open` the tasks that are still open,
    `elsewhere` whether pages wait for a task of another batch or run. `failure` is why a task
    failed as a whole.
    """

    view: BatchView | None
    landed: int = 0
    open: int = 0
    elsewhere: bool = False
    failure: str | None = None

    @property
    def at_rest(self) -> bool:
        """Whether calling again would find nothing to wait for."""
        return self.open == 0 and not self.elsewhere


def advance(engine: Engine, stage: Stage, batch: str, steps: Collection[str] = ()) -> Seen:
    """Looks, adopts, lands and sends once; may be called any number of times from anywhere.

    `steps` are those of the stage that are wanted (all when none is named).
    """
    chosen = tuple(step.name for step in stage.steps if not steps or step.name in steps)
    tasks = engine.ledger.tasks.open(recipe=stage.recipe.name, stage=stage.name, batch=batch)
    landed, still_open, failure = _adopt(engine, tasks)
    if failure is not None:
        return Seen(None, landed, still_open, failure=failure)
    if still_open:
        return Seen(None, landed, still_open)
    view = look(engine, stage.recipe, batch, chosen)
    if reused := reuse_results(engine, view, chosen):
        landed += reused
        view = look(engine, stage.recipe, batch, chosen)
    if not _anything_to_send(view, chosen):
        return Seen(view, landed)
    if send(engine, stage, view, chosen) is not None:
        return Seen(view, landed, open=1)
    _drop_lost_claims(engine, view, chosen)
    return Seen(view, landed, elsewhere=True)


def run_stage(
    engine: Engine,
    stage: Stage,
    batch: str,
    steps: Collection[str] = (),
    *,
    on_landed: Callable[[int], None] | None = None,
    poll_seconds: float = 5.0,
) -> BatchView:
    """Advances until nothing of the stage is left to do here, and gives the batch as it stands.

    `on_landed` is told how many rows each call landed. Raises `PlaceError` when a task failed as
    a whole: its pages are not to blame and stay to do.
    """
    place = engine.place(stage.place)
    # A file that could not be fetched in an earlier run may well be there now.
    engine.ledger.holds.clear(stage.recipe.name, batch=batch, reason=FailureKind.SOURCE.value)
    pause = 0.05
    try:
        while True:
            seen = advance(engine, stage, batch, steps)
            if on_landed is not None and seen.landed:
                on_landed(seen.landed)
            if seen.failure is not None:
                raise PlaceError(seen.failure)
            if seen.at_rest:
                return seen.view or look(engine, stage.recipe, batch, steps)
            pause = 0.05 if seen.landed else min(poll_seconds, pause * 2)
            place.wait(pause)
    except BaseException:
        if place.in_process:
            give_up(engine, stage, batch)
        raise


def give_up(engine: Engine, stage: Stage, batch: str) -> None:
    """Ends this engine's own tasks of the batch: what they finished lands, the rest is freed."""
    for task in engine.ledger.tasks.open(recipe=stage.recipe.name, stage=stage.name, batch=batch):
        if task.owner != engine.owner:
            continue
        if task.remote_id is not None:
            engine.place(task.place).cancel(task.remote_id)
            with suppress(RecipesError):  # the first error is the one to be told
                _land(engine, task)
        engine.ledger.tasks.dropped(task.id, "stopped before it ended")


def _anything_to_send(view: BatchView, steps: tuple[str, ...]) -> bool:
    return any(view.steps[step].count(PageState.TODO) for step in steps)


def _adopt(engine: Engine, tasks: list[TaskRow]) -> tuple[int, int, str | None]:
    """Asks the place about each open task: rows landed, tasks still open, and why one failed."""
    landed = 0
    still_open = 0
    failure: str | None = None
    for task in tasks:
        state, words = _state_of(engine, task)
        if state is State.LOST:
            engine.ledger.tasks.dropped(task.id, words)
            continue
        landed += _land(engine, task)
        if state is State.RUNNING:
            still_open += 1
        elif state is State.FAILED:
            engine.place(task.place).cancel(task.remote_id or "")
            engine.ledger.tasks.dropped(task.id, words)
            failure = words
        else:
            _close(engine, task)
    return landed, still_open, failure


def _state_of(engine: Engine, task: TaskRow) -> tuple[State, str]:
    """How the task stands; from its owner where the place cannot tell."""
    place = engine.place(task.place)
    remote_id = task.remote_id or place.find(task.name)
    if remote_id is None:
        return _by_owner(engine, task, "it was never sent")
    if task.remote_id is None:
        engine.ledger.tasks.sent(task.id, remote_id)
    state, words = place.statuses([remote_id])[remote_id]
    if state is State.UNKNOWN:
        return _by_owner(engine, task, words)
    if state is not State.LOST and task.owner == engine.owner and _age(task) > BEAT_EVERY:
        engine.ledger.tasks.beat([task.id], engine.owner)
    return state, words


def _by_owner(engine: Engine, task: TaskRow, words: str) -> tuple[State, str]:
    """Where the place cannot tell: the owner is at work on it, or dead, or has gone quiet."""
    if (
        task.owner == engine.owner
        or process_lives(task.owner.partition("/")[0]) is False
        or _age(task) > LOST_AFTER
    ):
        return State.LOST, words
    return State.RUNNING, words


def _age(task: TaskRow) -> float:
    return time.time() - (task.heartbeat_at or task.created_at).timestamp()


def _land(engine: Engine, task: TaskRow) -> int:
    if task.remote_id is None:
        return 0
    return sum(
        land_chunk(engine, task, chunk)
        for chunk in engine.place(task.place).results(task.remote_id)
    )


def _close(engine: Engine, task: TaskRow) -> None:
    """The task has ended and all it gave has landed: one file a step, then its row is closed."""
    engine.ledger.tasks.ended(task.id)
    for step in task.fingerprints:
        engine.library.compact(task.recipe, step, task.batch)
    engine.ledger.tasks.landed(task.id)


def _drop_lost_claims(engine: Engine, view: BatchView, steps: tuple[str, ...]) -> None:
    """Tasks of other batches or runs that have our keys and have died are dropped."""
    keys = {
        view.steps[step].keys[page_id]
        for step in steps
        for page_id, state in view.steps[step].states.items()
        if state in (PageState.TODO, PageState.WAITING)
    }
    for task_id in set(engine.ledger.tasks.claimed(keys).values()):
        task = engine.ledger.tasks.get(task_id)
        if task is None:
            continue
        state, words = _state_of(engine, task)
        if state is State.LOST:
            engine.ledger.tasks.dropped(task.id, words)
