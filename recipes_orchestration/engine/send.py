"""Send: what has neither landed nor is held nor open goes to the stage's place, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from ..errors import (
    InDoubt,
    OverCap,
    PlaceError,
    ProviderError,
    Refused,
    TakenOver,
    Unreachable,
)
from ..ledger.tasks import TaskRow
from ..places.place import Chunk, Package, Place, Sought
from ..runner.work import UNANSWERED
from ..stages import Stage
from ..still_ours import asked_before_each
from .beat import beating
from .causes import note_over_cap
from .engine import Engine
from .gates import Gate, gate
from .land import land_chunk
from .look import BatchView
from .pausing import pause_place
from .preparing import NO_SLOT, Work, keys_of, plan_work, prepare, steps_of
from .reuse import reuse_results
from .spending import still_over
from .work import task_spec

__all__ = ["Sending", "send", "sought"]


@dataclass
class Sending:
    """What a call of `send` did: tasks that went, and why the rest waits.

    `landed` are results that needed no place. `rival`: another process has some of the work.
    `person`: a person holds the rest back, and `stopped`: by a stop. `over`: a cap does.
    """

    sent: int = 0
    landed: int = 0
    waiting: str | None = None
    rival: bool = False
    person: bool = False
    stopped: bool = False
    over: OverCap | None = None

    @property
    def stops(self) -> bool:
        """Whether nothing more is to be sent now."""
        return self.rival or self.waiting is not None

    def held_back(self, passed: Gate) -> None:
        """Takes up that nothing more may be sent."""
        self.waiting, self.person, self.stopped = passed.words, passed.person, passed.stopped

    def capped(self, over: OverCap) -> None:
        """Takes up that what is next does not fit under a cap."""
        self.waiting, self.over = str(over), over


def send(
    engine: Engine, stage: Stage, view: BatchView, steps: tuple[str, ...], *, now: bool = False
) -> Sending:
    """Sends what can go of the batch, after the gates. `now`: a person waits for it.

    Written down before it is asked for, and looked up by name before it is asked for again: a
    kill at any moment leaves a row from which the next look goes on.
    """
    sending = Sending()
    work = plan_work(view, steps)
    claims = keys_of(view, work)
    free = engine.ledger.tasks.free_claims(claims)
    if len(free) < len(claims):
        work = {
            page_id: chain
            for page_id, chain in work.items()
            if all(view.steps[step].keys[page_id] in free for step in chain)
        }
    if not work:
        sending.rival = True
        return sending
    passed = gate(engine, stage, view, work, now)
    if not passed.work:
        sending.held_back(passed)
        return sending
    for part, hurried in _ways(engine, view, passed.work, passed.now):
        _send_part(engine, stage, view, part, hurried, sending)
        if sending.stops:
            break
    return sending


def _ways(engine: Engine, view: BatchView, work: Work, now: bool) -> Iterator[tuple[Work, bool]]:
    """The work by the way it goes: pages whose batch expired may have to go as plain calls."""
    place = next(iter(view.steps[chain[0]].step.place for chain in work.values()))
    hurried: Work = {}
    if not now and engine.on_expired(place) == "calls":
        failed = engine.ledger.holds.attempts_of(view.recipe.name, view.source, view.batch)
        expired = {(row.page_id, row.key) for row in failed.values() if row.reason in UNANSWERED}
        hurried = {
            page_id: chain
            for page_id, chain in work.items()
            if any((page_id, view.steps[step].keys[page_id]) in expired for step in chain)
        }
    rest = {page_id: chain for page_id, chain in work.items() if page_id not in hurried}
    if rest:
        yield rest, now
    if hurried:
        yield hurried, True


def _send_part(
    engine: Engine, stage: Stage, view: BatchView, part: Work, now: bool, sending: Sending
) -> None:
    place = engine.place(stage.place)

    def no_slot() -> bool:
        if place.takes_slot(len(part), now=now) and engine.slots(stage.place) == 0:
            sending.waiting = _slot_words(place)
        return sending.waiting is not None

    if no_slot():
        return
    if over := still_over(engine, stage, view.batch, len(part)):
        sending.capped(over)
        return
    spec = task_spec(engine, stage, view, part)
    left = set(part)
    with closing(place.pack(spec, now=now)) as groups:  # pyright: ignore[reportArgumentType]
        for packages in groups:
            passed = gate(engine, stage, view, part, now)  # packing may have taken a while
            try:
                if passed.work != part or passed.now != now:
                    _hold_back(passed, sending)
                    return
                works = [_work_of(view, part, package) for package in packages]
                _send_group(engine, stage, view, part, works, packages, sending)
            finally:
                for package in packages:
                    place.discard(package)
            left.difference_update(*works)
            # With the last slot taken, the rest waits; where nothing is left, nothing does.
            if sending.stops or (left and no_slot()):
                return


def _hold_back(passed: Gate, sending: Sending) -> None:
    """What was packed may not go as it is: the next look plans what still may."""
    if passed.work:
        sending.rival = True
    else:
        sending.held_back(passed)


def _slot_words(place: Place) -> str:
    return f"Waiting for a slot at {place.name}: {place.max_open} batches are open (max_open)."


def _send_group(
    engine: Engine,
    stage: Stage,
    view: BatchView,
    part: Work,
    works: Sequence[Work],
    packages: Sequence[Package],
    sending: Sending,
) -> None:
    """Sends packages of the part, which hold these works, by one call."""
    try:
        tasks = prepare(engine, stage, view, works, packages)
    except OverCap as over:
        engine.over_cap[stage.recipe.name, stage.name, view.batch, len(part)] = over.usd
        note_over_cap(engine, stage.recipe.name, over)
        sending.capped(over)
        return
    if tasks is NO_SLOT:
        sending.waiting = _slot_words(engine.place(stage.place))
        return
    if not tasks:
        sending.rival = True
        return
    whole = {page_id: chain for work in works for page_id, chain in work.items()}
    if _landed_meanwhile(engine, view, whole):
        for task in tasks:
            engine.ledger.tasks.dropped(task.id, "a rival landed some of it before it was sent")
        sending.rival = True
        return
    group: list[tuple[TaskRow, Package]] = []
    for task, package in zip(tasks, packages, strict=True):
        if package.decided:
            sending.landed += land_chunk(engine, task, Chunk(0, package.decided))
        if package.pages:
            group.append((task, package))
        else:
            engine.ledger.tasks.landed(task.id)
    if group:
        _submit(engine, engine.place(stage.place), group, sending)


def _work_of(view: BatchView, part: Work, package: Package) -> Work:
    page_ids = package.page_ids
    if len(page_ids) == len(part):
        return part
    shas = {view.pages[page_id].sha256 for page_id in page_ids}
    return {page: chain for page, chain in part.items() if view.pages[page].sha256 in shas}


def _submit(
    engine: Engine, place: Place, group: Sequence[tuple[TaskRow, Package]], sending: Sending
) -> None:
    """Asks the place, unless it already has tasks of those names, and writes the ids down."""
    tasks = [task for task, _ in group]
    try:
        with beating(engine, tasks), asked_before_each(partial(_check_ours, engine, tasks)):
            remote_ids = _find_or_submit(engine, place, group)
    except TakenOver:  # who has the tasks now looks for them, and sends what is not there
        sending.rival = True
        return
    except (Refused, Unreachable) as error:  # nothing was sent
        for task in tasks:
            engine.ledger.tasks.dropped(task.id, str(error))
        if not pause_place(engine, place.name, error):
            pages = sum(len(package.pages) for _, package in group)
            raise PlaceError(f"{place.name} refused a batch of {pages} pages: {error}") from error
        sending.waiting = engine.paused(place.name) or str(error)
        return
    except ProviderError as error:
        # It may have been accepted: the tasks stay as they are and are looked for by their names,
        # once the place has had its time from now on to show them.
        engine.ledger.tasks.beat([task.id for task in tasks], engine.owner)
        names = tasks[0].array or tasks[0].name
        sending.waiting = f"It is not known whether {place.name} took task {names}: {error}"
        return
    for task, remote_id in zip(tasks, remote_ids, strict=True):
        engine.ledger.tasks.sent(task.id, remote_id)
    sending.sent += len(tasks)


def _check_ours(engine: Engine, tasks: Sequence[TaskRow]) -> None:
    ids = {task.id for task in tasks}
    if engine.ledger.tasks.beat(ids, engine.owner) != ids:
        raise TakenOver(f"Another process has taken over the task {tasks[0].name}.")


def _find_or_submit(
    engine: Engine, place: Place, group: Sequence[tuple[TaskRow, Package]]
) -> Sequence[str]:
    if any(_was_asked_before(task) for task, _ in group):
        found = [place.find(sought(engine, task)) for task, _ in group]
        there = [remote_id for remote_id in found if remote_id is not None]
        if len(there) == len(group):
            return there
        if there:
            raise InDoubt(
                f"{place.name} has {len(there)} of the {len(group)} tasks of this name; they are "
                "looked for again before anything is sent."
            )
    return place.submit([task.name for task, _ in group], [package for _, package in group])


def _was_asked_before(task: TaskRow) -> bool:
    """Whether the name was in use: a row made anew keeps the moment of the first time."""
    return task.heartbeat_at is not None and task.created_at < task.heartbeat_at


def sought(engine: Engine, task: TaskRow) -> Sought:
    """What a place needs to know to find a task whose id is not known."""
    return Sought(
        name=task.name,
        slot=task.slot,
        ids=frozenset((task.calls or {}).values()),
        since=task.created_at,
        known=engine.ledger.tasks.remote_ids(task.place, task.created_at - timedelta(days=1)),
    )


def _landed_meanwhile(engine: Engine, view: BatchView, work: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a result that is to be computed is in the library by now, here or elsewhere.

    A rival gives up its claims only when all has landed, so nothing can land unseen after this.
    """
    steps = steps_of(view, work)
    for step in steps:
        landed = engine.library.landed(view.recipe.name, step, view.batch)
        keys = view.steps[step].keys
        if landed and any(
            (page_id, keys[page_id]) in landed for page_id, chain in work.items() if step in chain
        ):
            return True
    return reuse_results(engine, view, steps) > 0
