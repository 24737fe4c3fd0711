"""Send: what has neither landed nor is held nor open goes to the stage's place, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..errors import PlaceError, ProviderError, Refused
from ..ledger.tasks import NoSlot, TaskRow
from ..places.place import Chunk, Package, Place, Sought
from ..recipe import canonical_json, digest
from ..runner.work import UNANSWERED
from ..stages import Stage
from .beat import beating
from .engine import Engine
from .land import land_chunk
from .look import BatchView, PageState
from .reuse import reuse_results
from .work import sent_record, task_spec

__all__ = ["Sending", "plan_work", "send", "sought"]

Work = dict[str, tuple[str, ...]]


@dataclass
class Sending:
    """What a call of `send` did: tasks that went, and why the rest waits.

    `landed` are results that needed no place. `rival`: another process has some of the work.
    """

    sent: int = 0
    landed: int = 0
    waiting: str | None = None
    rival: bool = False

    @property
    def stops(self) -> bool:
        """Whether nothing more is to be sent now."""
        return self.rival or self.waiting is not None


def plan_work(view: BatchView, steps: tuple[str, ...]) -> Work:
    """The steps that can be run now on each page, in order: page_id to step names. Pure.

    A step that waits for another one of the same list rides behind it.
    """
    work: Work = {}
    for page_id in view.pages:
        chain: list[str] = []
        for step in steps:
            state = view.steps[step].states[page_id]
            if state is PageState.TODO or (
                state is PageState.WAITING
                and all(
                    need in chain or view.steps[need].states[page_id] is PageState.LANDED
                    for need in view.steps[step].step.needs
                )
            ):
                chain.append(step)
        if chain:
            work[page_id] = tuple(chain)
    return work


def send(
    engine: Engine, stage: Stage, view: BatchView, steps: tuple[str, ...], *, now: bool = False
) -> Sending:
    """Sends what can go of the batch, after the gates. `now`: a person waits for it.

    Written down before it is asked for, and looked up by name before it is asked for again: a
    kill at any moment leaves a row from which the next look goes on.
    """
    sending = Sending()
    work = plan_work(view, steps)
    claims = {view.steps[step].keys[page_id] for page_id, chain in work.items() for step in chain}
    free = engine.ledger.tasks.free_claims(claims)
    work = {
        page_id: chain
        for page_id, chain in work.items()
        if all(view.steps[step].keys[page_id] in free for step in chain)
    }
    if not work:
        sending.rival = True
        return sending
    if paused := engine.paused(stage.place):
        sending.waiting = paused
        return sending
    for part, hurried in _ways(engine, view, work, now):
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
    spec = task_spec(engine, stage, view, part)
    with closing(place.pack(spec, now=now)) as packages:  # pyright: ignore[reportArgumentType]
        for package in packages:
            try:
                _send_package(engine, stage, view, part, package, sending)
            finally:
                place.discard(package)
            if sending.stops or no_slot():
                return


def _slot_words(place: Place) -> str:
    return f"Waiting for a slot at {place.name}: {place.max_open} batches are open (max_open)."


def _send_package(
    engine: Engine,
    stage: Stage,
    view: BatchView,
    part: Work,
    package: Package,
    sending: Sending,
) -> None:
    place = engine.place(stage.place)
    shas = {view.pages[page_id].sha256 for page_id in package.page_ids}
    work = {page: chain for page, chain in part.items() if view.pages[page].sha256 in shas}
    task = _prepare(engine, stage, view, work, package, sending)
    if task is None:
        return
    if _landed_meanwhile(engine, view, work):
        engine.ledger.tasks.dropped(task.id, "a rival landed some of it before it was sent")
        sending.rival = True
        return
    if package.decided:
        sending.landed += land_chunk(engine, task, Chunk(0, package.decided))
    if not package.pages:
        engine.ledger.tasks.landed(task.id)
        return
    _submit(engine, place, task, package, sending)


def _prepare(
    engine: Engine,
    stage: Stage,
    view: BatchView,
    work: Work,
    package: Package,
    sending: Sending,
) -> TaskRow | None:
    place = engine.place(stage.place)
    steps = tuple(each for each in view.steps if any(each in chain for chain in work.values()))
    attempt = engine.ledger.tasks.last_attempt(view.recipe.name, stage.name, view.batch) + 1
    keys = {view.steps[step].keys[page] for page, chain in work.items() for step in chain}
    try:
        task = engine.ledger.tasks.prepare(
            name=_task_name(stage, view, keys, attempt),
            recipe=view.recipe.name,
            stage=stage.name,
            source=view.source,
            batch=view.batch,
            place=stage.place,
            attempt=attempt,
            fingerprints={step: view.steps[step].fingerprint for step in steps},
            pages=[(page_id, view.pages[page_id].sha256) for page_id in work],
            claims=keys,
            owner=engine.owner,
            sent=sent_record(view, steps, package),
            calls=package.calls,
            slot=package.slot,
            slots=place.max_open,
        )
    except NoSlot:
        sending.waiting = _slot_words(place)
        return None
    sending.rival = task is None
    return task


def _submit(
    engine: Engine, place: Place, task: TaskRow, package: Package, sending: Sending
) -> None:
    """Asks the place, unless it already has a task of that name, and writes the id down."""
    try:
        with beating(engine, task):
            remote_id = _find_or_submit(engine, place, task, package)
    except Refused as refused:
        engine.ledger.tasks.dropped(task.id, str(refused))
        if not refused.account:
            raise PlaceError(
                f"{place.name} refused a batch of {len(package.pages)} pages: {refused}"
            ) from refused
        until = None
        if refused.retry_after is not None:
            until = datetime.now(UTC) + timedelta(seconds=refused.retry_after)
        engine.ledger.pauses.pause(place.name, str(refused), until)
        sending.waiting = engine.paused(place.name)
        return
    except ProviderError as error:
        # It may have been accepted: the task stays as it is and is looked for by its name, once
        # the place has had its time from now on to show it.
        engine.ledger.tasks.beat([task.id], engine.owner)
        sending.waiting = f"It is not known whether {place.name} took task {task.name}: {error}"
        return
    engine.ledger.tasks.sent(task.id, remote_id)
    sending.sent += 1


def _find_or_submit(engine: Engine, place: Place, task: TaskRow, package: Package) -> str:
    if _was_asked_before(task):
        found = place.find(sought(engine, task))
        if found is not None:
            return found
    return place.submit(task.name, package)


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
    steps = tuple(step for step in view.steps if any(step in chain for chain in work.values()))
    for step in steps:
        landed = engine.library.landed(view.recipe.name, step, view.batch)
        keys = view.steps[step].keys
        if any(
            (page_id, keys[page_id]) in landed for page_id, chain in work.items() if step in chain
        ):
            return True
    return reuse_results(engine, view, steps) > 0


def _task_name(stage: Stage, view: BatchView, keys: set[str], attempt: int) -> str:
    """Names the task by what it will do, so that two processes that plan alike name it alike."""
    parts = [view.recipe.name, stage.name, view.source, view.batch, sorted(keys), attempt]
    return f"{stage.name}-{digest(canonical_json(parts))}"
