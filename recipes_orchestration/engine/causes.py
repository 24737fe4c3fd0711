"""What a person should know at this moment, each thing once, read from the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from ..errors import OverCap
from ..ledger.alerts import AlertKind, Cause
from ..ledger.controls import BY_NOW
from ..ledger.holds import HeldFor
from ..ledger.pauses import Pause
from ..ledger.tasks import TaskHead, TaskState
from .engine import Engine
from .land import DEADLINE
from .spending import caps_of, committed_to
from .trends import dearer, slower

__all__ = ["FOUND", "LONG_WAIT", "find_causes", "note_over_cap"]

FOUND = tuple(AlertKind)
"""The kinds that are looked for: one that is not found any more has ended."""

LONG_WAIT = timedelta(hours=12)
"""A batch that waits for longer is told of."""

# A place that takes work again by itself sooner than this is nothing to tell a person.
SHORT_PAUSE = timedelta(minutes=10)


def find_causes(engine: Engine, now: datetime | None = None) -> list[Cause]:
    """Every cause that goes on: as few as there are reasons, however many pages have them."""
    now = now or datetime.now(UTC)
    heads = engine.ledger.tasks.heads()
    return [
        *(_hold(each) for each in engine.ledger.holds.reasons()),
        *_held_tasks(heads),
        *_paused(engine.ledger.pauses.all(), now),
        *_waiting(heads, now),
        *_deadlines(engine, heads),
        *_caps(engine),
        *dearer(engine, now),
        *slower(engine),
    ]


def note_over_cap(engine: Engine, recipe: str, over: OverCap) -> None:
    """Keeps which caps are reached when only a person can let the recipe go on."""
    if not over.for_good:
        return
    known = engine.project.recipe(recipe)
    for cap, committed in committed_to(engine, caps_of(engine.project, known)):
        if committed.booked + over.usd > cap.usd:
            cause = Cause(_cap(cap.what, str(cap.usd)), AlertKind.CAP, f"{recipe}: {over}.")
            engine.ledger.alerts.add(cause)


def _caps(engine: Engine) -> Iterable[Cause]:
    """Those that were reached and are as they were: what was paid never becomes less."""
    standing = engine.ledger.alerts.open([AlertKind.CAP])
    caps = {_cap(cap.what, str(cap.usd)) for cap in caps_of(engine.project)} if standing else set()
    return [Cause(each.cause, each.kind, each.words) for each in standing if each.cause in caps]


def _cap(what: str, usd: str) -> str:
    return f"cap/{what}/{usd}"


def _hold(held: HeldFor) -> Cause:
    pages = "1 page is" if held.pages == 1 else f"{held.pages:,} pages are"
    batches = "" if held.batches == 1 else f" in {held.batches:,} batches"
    words = (
        f"{pages} held at the step {held.step} of {held.recipe}{batches} ({held.reason}). "
        f"{held.page_id}: {held.words} See them with: recipes held {held.recipe}"
    )
    return Cause(f"hold/{held.recipe}/{held.step}/{held.reason}", AlertKind.HOLD, words)


def _held_tasks(heads: Iterable[TaskHead]) -> Iterable[Cause]:
    for (recipe, stage, place), held in _grouped(head for head in heads if head.held).items():
        words = f"{recipe}/{stage} waits for a person at {place}. {held[0].held}{_more(held)}"
        yield Cause(f"hold/{recipe}/{stage}/at {place}", AlertKind.HOLD, words)


def _paused(pauses: Iterable[Pause], now: datetime) -> Iterable[Cause]:
    for pause in pauses:
        if pause.until is not None and pause.until - now < SHORT_PAUSE:
            continue
        if pause.until is not None:
            ends = f"until {pause.until:%Y-%m-%d %H:%M} UTC"
        elif pause.until_reached:
            ends = "until it answers again"
        else:
            ends = f"until you run: recipes resume {pause.place}"
        words = f"Nothing is sent to {pause.place} {ends}. {pause.words}"
        yield Cause(f"paused/{pause.place}", AlertKind.PAUSED, words)


def _waiting(heads: Iterable[TaskHead], now: datetime) -> Iterable[Cause]:
    late = [
        head
        for head in heads
        if head.sent_at is not None
        and now - head.sent_at > LONG_WAIT
        and head.state is not TaskState.ended
        and head.held is None
    ]
    for (recipe, stage, place), tasks in _grouped(late).items():
        first = min(tasks, key=lambda task: task.sent_at or now)
        hours = (now - (first.sent_at or now)).total_seconds() / 3600
        words = (
            f"{recipe}/{stage} waits for {place}: {first.remote_id} (batch {first.batch}) was sent "
            f"{hours:.0f} hours ago and has not ended{_more(tasks)}. See: recipes tasks {recipe}"
        )
        yield Cause(f"waiting/{recipe}/{stage}/{place}", AlertKind.WAITING, words)


def _deadlines(engine: Engine, heads: Iterable[TaskHead]) -> Iterable[Cause]:
    """Those that passed and whose tasks are still to end; they were told of as they passed."""
    stopped = {(head.recipe, head.stage) for head in heads if head.stopped in (DEADLINE, BY_NOW)}
    for alert in engine.ledger.alerts.open([AlertKind.DEADLINE]) if stopped else ():
        _, recipe, stage, _ = alert.cause.split("/", 3)
        if (recipe, stage) in stopped:
            yield Cause(alert.cause, alert.kind, alert.words)


def _grouped(heads: Iterable[TaskHead]) -> dict[tuple[str, str, str], list[TaskHead]]:
    found: dict[tuple[str, str, str], list[TaskHead]] = defaultdict(list)
    for head in heads:
        found[head.recipe, head.stage, head.place].append(head)
    return found


def _more(tasks: list[TaskHead]) -> str:
    return f" (and {len(tasks) - 1:,} more)" if len(tasks) > 1 else ""
