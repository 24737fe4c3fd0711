"""`advance`: one look at a stage of a batch, and whatever can be done about it now."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..collecting import OFTEN, RARELY, collecting_after
from ..errors import HeldBack, NoConsent, PlaceError
from ..ledger.controls import ControlKind, Scope
from ..ledger.tasks import TaskHead, TaskRow
from ..places.place import State
from ..places.processes import process_lives
from ..runner.work import FailureKind
from ..stages import Stage
from .adopt import Adopted, adopt, give_up
from .deadlines import keep_deadlines
from .engine import Engine
from .heeding import heed
from .look import BatchView, PageState, look
from .reuse import reuse_results
from .send import Sending, send
from .spending import OverCap
from .standing import standings
from .stopped import stopped_words
from .tidying import tidy

__all__ = ["Seen", "advance", "give_up_all", "run_stage"]

MOST_PAUSE = 60.0


@dataclass(frozen=True)
class Seen:
    """What `advance` saw and did.

    `view` is the batch as it stands, or None while tasks are open and nothing else was looked
    at. `landed` counts the rows that landed in this call, `open` the tasks that are still open,
    `elsewhere` whether pages wait for a task of another batch or run. `failure` is why a task
    failed as a whole or waits for a person, `waiting` why nothing more is sent now: `person` says
    that a person holds it back, `stopped` that it was stopped, `over` which cap does. `remote` are
    the open tasks that go on without this process.
    """

    view: BatchView | None
    landed: int = 0
    open: int = 0
    elsewhere: bool = False
    failure: str | None = None
    waiting: str | None = None
    person: bool = False
    stopped: bool = False
    over: OverCap | None = None
    remote: tuple[TaskHead | TaskRow, ...] = ()

    @property
    def at_rest(self) -> bool:
        """Whether calling again would find nothing to wait for."""
        return self.open == 0 and not self.elsewhere and self.waiting is None

    @property
    def goes_on_without_us(self) -> bool:
        """Whether all that is waited for happens without this process."""
        return not self.at_rest and not self.elsewhere and self.open == len(self.remote)


def advance(
    engine: Engine, stage: Stage, batch: str, steps: Collection[str] = (), *, now: bool = False
) -> Seen:
    """Looks, adopts, lands and sends once; may be called any number of times from anywhere.

    `steps` are those of the stage that are wanted (all when none is named). `now`: a person waits
    for it, so nothing goes as a batch.
    """
    with collecting_after(OFTEN if stage.steps[0].provider is None else RARELY):
        seen = _advance(engine, stage, batch, steps, now)
        # Last, so that pages which go anew need not be sent again.
        tidy(engine, stage.place)
        return seen


def _advance(engine: Engine, stage: Stage, batch: str, steps: Collection[str], now: bool) -> Seen:
    chosen = tuple(step.name for step in stage.steps if not steps or step.name in steps)
    place = engine.place(stage.place)
    tasks = engine.ledger.tasks.open(recipe=stage.recipe.name, stage=stage.name, batch=batch)
    keep_deadlines(engine, tasks)
    if heed(engine, tasks).tasks:
        tasks = engine.ledger.tasks.open(recipe=stage.recipe.name, stage=stage.name, batch=batch)
    adopted = adopt(engine, tasks)
    landed = adopted.landed
    remote = tuple(task for task in adopted.open if not place.ends_here(task.remote_id))
    if adopted.failure is not None or (adopted.open and place.ends_here(None)):
        return Seen(None, landed, len(adopted.open), failure=adopted.failure, remote=remote)
    view = look(engine, stage.recipe, batch, chosen)
    if reused := reuse_results(engine, view, chosen):
        landed += reused
        view = look(engine, stage.recipe, batch, chosen)
    if not _any(view, chosen, PageState.TODO):
        if not adopted.open:
            _end_now(engine, stage, view, chosen)
        # A rival may have sent some since the open tasks were read: the next look adopts it.
        rivals_open = not adopted.open and _any(view, chosen, PageState.OPEN)
        return Seen(view, landed, len(adopted.open), elsewhere=rivals_open, remote=remote)
    try:
        sending = send(engine, stage, view, chosen, now=now)
    except NoConsent:
        if not adopted.open:
            raise
        # What went while it was allowed is paid for: it lands before the rest is refused.
        return Seen(view, landed, len(adopted.open), remote=remote)
    if sending.sent or sending.landed or sending.waiting:
        return _sent(engine, stage, batch, landed + sending.landed, sending)
    if sending.rival:
        rivals = _adopt_rivals(engine, view, chosen)
        there = tuple(task for task in rivals.open if not _ends_here(engine, task))
        return Seen(
            view,
            landed + rivals.landed,
            len(adopted.open) + len(there),
            # Work of a process is waited for here; without any, the next look finds it landed.
            elsewhere=len(rivals.open) > len(there) or not rivals.open,
            failure=rivals.failure,
            remote=remote + there,
        )
    return Seen(view, landed, len(adopted.open), remote=remote)


def _end_now(engine: Engine, stage: Stage, view: BatchView, steps: tuple[str, ...]) -> None:
    """What was wanted now is there: pages that come later wait for the cheaper way again."""
    if stage.steps[0].provider is None:
        return
    for step in steps:
        if view.steps[step].settled():
            scope = Scope(view.recipe.name, batch=view.batch, step=step)
            engine.ledger.controls.end((ControlKind.NOW,), scope)


def _sent(engine: Engine, stage: Stage, batch: str, landed: int, sending: Sending) -> Seen:
    place = engine.place(stage.place)
    tasks = engine.ledger.tasks.heads(stage.recipe.name, stage.name, batch)
    remote = tuple(task for task in tasks if not place.ends_here(task.remote_id))
    if tasks or sending.waiting:
        return Seen(
            None,
            landed,
            len(tasks),
            waiting=sending.waiting,
            person=sending.person,
            stopped=sending.stopped,
            over=sending.over,
            remote=remote,
        )
    # What was decided while it was packed may be all there was: the next look will tell.
    return Seen(None, landed, elsewhere=True)


def run_stage(
    engine: Engine,
    stage: Stage,
    batch: str,
    steps: Collection[str] = (),
    *,
    on_landed: Callable[[int], None] | None = None,
    poll_seconds: float = 5.0,
    now: bool = False,
    defer: Callable[[Seen], bool] | None = None,
) -> BatchView | None:
    """Advances until nothing of the stage is left to do here, and gives the batch as it stands.

    `on_landed` is told how many rows each call landed. While all that is waited for goes on
    without this process, `defer` is asked: True ends the call with None, and nothing is given up.
    Raises `PlaceError` when a task failed as a whole or waits for a person, or, unless it is
    deferred, when the place is paused until a person resumes it or a cap is reached: the pages
    are not to blame and stay to do. Raises `HeldBack` when a person stopped it, once what was out
    has landed, and when a person paused it, unless it is deferred. Raises `NoConsent` when pages
    may not leave for the place.
    """
    place = engine.place(stage.place)
    # A file that could not be fetched in an earlier run may well be there now.
    engine.ledger.holds.clear(stage.recipe.name, batch=batch, reason=FailureKind.SOURCE.value)
    pause = 0.05
    try:
        while True:
            seen = advance(engine, stage, batch, steps, now=now)
            if on_landed is not None and seen.landed:
                on_landed(seen.landed)
            if seen.failure is not None:
                raise PlaceError(seen.failure)
            if seen.stopped and not seen.open:
                raise HeldBack(f"{stopped_words(engine, stage, batch)}. {seen.waiting}")
            if seen.at_rest:
                return seen.view or look(engine, stage.recipe, batch, steps)
            if seen.goes_on_without_us:
                if defer is not None and defer(seen):
                    return None
                if not seen.open:
                    _raise_if_paused(engine, stage, seen)
            pause = 0.05 if seen.landed else _longer(pause, poll_seconds, seen)
            place.wait(pause)
    except BaseException:
        give_up_all(engine, stage, batch)
        raise


def _longer(pause: float, poll_seconds: float, seen: Seen) -> float:
    """Twice as long each time: up to the poll for work here, up to a minute for work elsewhere."""
    most = max(poll_seconds, MOST_PAUSE) if seen.goes_on_without_us else poll_seconds
    if pause * 2 <= poll_seconds:
        return pause * 2
    return min(most, max(pause * 1.2, poll_seconds))


def _raise_if_paused(engine: Engine, stage: Stage, seen: Seen) -> None:
    if seen.person:
        raise HeldBack(seen.waiting)
    if seen.over is not None and seen.over.for_good:
        raise PlaceError(f"{seen.over}.")
    pause = engine.ledger.pauses.of(stage.place)
    if pause is not None and pause.until is None and not pause.until_reached:
        raise PlaceError(engine.paused(stage.place) or pause.words)


def give_up_all(engine: Engine, stage: Stage, batch: str) -> None:
    """Ends this engine's own tasks of the batch that end with this process.

    What they finished lands, the rest is freed. A batch at a provider stays open, to be adopted.
    """
    place = engine.place(stage.place)
    for task in engine.ledger.tasks.open(recipe=stage.recipe.name, stage=stage.name, batch=batch):
        if task.owner == engine.owner and place.ends_here(task.remote_id):
            give_up(engine, task)


def _any(view: BatchView, steps: tuple[str, ...], state: PageState) -> bool:
    return any(view.steps[step].count(state) for step in steps)


def _adopt_rivals(engine: Engine, view: BatchView, steps: tuple[str, ...]) -> Adopted:
    """Sees to the tasks of other batches or runs that have our keys, where they cannot.

    Those that have died are dropped. A batch that has ended, and whose process has too, lands
    here: its own run may never come back. One that waits for a person is a failure here as well.
    Gives those that are running as open.
    """
    keys = {
        view.steps[step].keys[page_id]
        for step in steps
        for page_id, state in view.steps[step].states.items()
        if state in (PageState.TODO, PageState.WAITING)
    }
    found = [
        engine.ledger.tasks.get(task_id)
        for task_id in sorted(set(engine.ledger.tasks.claimed(keys).values()))
    ]
    tasks = {task.id: task for task in found if task is not None}
    ended: list[TaskRow] = []
    running: list[TaskRow] = []
    for task_id, standing in standings(engine, tasks.values()).items():
        task = tasks[task_id]
        if standing.state is State.LOST:
            engine.ledger.tasks.dropped(task_id, standing.words)
        elif task.held or (
            standing.state is State.ENDED
            and process_lives(task.owner.partition("/")[0]) is not True
        ):
            ended.append(task)
        elif standing.state is State.RUNNING:
            running.append(task)
    adopted = adopt(engine, ended)
    adopted.open += running
    return adopted


def _ends_here(engine: Engine, task: TaskRow) -> bool:
    return engine.place(task.place).ends_here(task.remote_id)
