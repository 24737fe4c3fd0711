"""What becomes dearer or slower than it was: seen in bills and in what far sides told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from ..ledger.alerts import AlertKind, Cause
from ..ledger.bookings import Booking
from ..recipe import LOCAL
from ..stages import Stage, stages_of
from .engine import Engine
from .spending import dollars

__all__ = ["dearer", "slower"]

RECENT, BEFORE = timedelta(days=1), timedelta(days=30)
DEARER, SLOWER = Decimal("1.15"), 1.5
# A job is paid by the minute and starts before its first page: the sheet's own high is as wide.
DEARER_JOB = Decimal("2.5")
# In seconds: what is less may be another program on the machine.
LEAST_SLOWER = 0.2
# Fewer say nothing.
FEWEST_BILLS, FEWEST_TASKS, LAST_TASKS = 3, 8, 3


def dearer(engine: Engine, now: datetime) -> Iterable[Cause]:
    """Tasks of the last day that cost over 15 % more than was to be expected.

    Expected is what the task was estimated at when it was sent; and what a line of the same step,
    model and kind of price cost on average in the 30 days before.
    """
    groups: dict[tuple[str, str, str, str], list[Booking]] = defaultdict(list)
    for bill in engine.ledger.bookings.all(since=now - BEFORE):
        if sum(bill.lines.values()):
            groups[bill.recipe, bill.step, bill.model, bill.mode].append(bill)
    found = _over_estimate(engine, now)
    for (recipe, step, model, _), bills in groups.items():
        before = [bill for bill in bills if now - bill.booked_at > RECENT]
        if len(before) < FEWEST_BILLS or (recipe, step) in found:
            continue
        each = sum(map(_usd, before), Decimal(0)) / sum(map(_lines, before))
        for bill in bills[len(before) :]:
            expected = each * _lines(bill)
            if expected > 0 and _usd(bill) > expected * DEARER:
                found[recipe, step] = (
                    f"A task of {recipe}/{step} ({model}, batch {bill.batch}) cost "
                    f"{dollars(_usd(bill))}; by the {len(before)} before {dollars(expected)} was "
                    f"to be expected. See: recipes spend {recipe}"
                )
                break
    for (recipe, step), words in found.items():
        yield Cause(f"dearer/{recipe}/{step}", AlertKind.DEARER, words)


def _over_estimate(engine: Engine, now: datetime) -> dict[tuple[str, str], str]:
    """What to say of steps of which a task was dearer than its estimate, the newest one first."""
    estimates = engine.ledger.bookings.estimates(now - RECENT)
    found: dict[tuple[str, str], str] = {}
    if not estimates:
        return found
    for bill in reversed(engine.ledger.bookings.all(since=now - RECENT)):
        estimate = estimates.get(bill.task_id)
        answers = _lines(bill)
        if not estimate or not answers or (bill.recipe, bill.step) in found:
            continue
        # The mean of few answers is further from that of all, by about their own spread.
        most = DEARER_JOB if bill.mode == "job" else DEARER + 1 / Decimal(answers).sqrt() / 2
        if _usd(bill) > estimate * most:
            found[bill.recipe, bill.step] = (
                f"A task of {bill.recipe}/{bill.step} ({bill.model}, batch {bill.batch}) cost "
                f"{dollars(_usd(bill))} and was estimated at {dollars(estimate)}. See: "
                f"recipes tasks {bill.recipe} --all"
            )
    return found


def slower(engine: Engine) -> Iterable[Cause]:
    """Steps whose last three tasks took half as long again a page as those before.

    In jobs, on this machine, and in plain calls. How long a provider's batch waits says nothing of
    a page.
    """
    for recipe in engine.project.recipes.values():
        for stage in stages_of(recipe):
            yield from _slower(engine, stage)


def _slower(engine: Engine, stage: Stage) -> Iterable[Cause]:
    recipe = stage.recipe.name
    reports = engine.ledger.tasks.last_reports(recipe, stage.name, stage.place)
    for step in stage.steps:
        # The newest first.
        took = [seconds for each in reports if (seconds := _median(each, step.name)) is not None]
        if len(took) < FEWEST_TASKS:
            continue
        lately, before = median(took[:LAST_TASKS]), median(took[LAST_TASKS:])
        if lately > before * SLOWER and lately - before > LEAST_SLOWER:
            words = (
                f"{recipe}/{step.name} takes {lately:.1f} seconds a page {_at(stage)} over its "
                f"last {LAST_TASKS} tasks, and took {before:.1f} before. See: "
                f"recipes tasks {recipe} --all"
            )
            yield Cause(f"slower/{recipe}/{step.name}/{stage.place}", AlertKind.SLOWER, words)


def _at(stage: Stage) -> str:
    if stage.place == LOCAL:
        return "on this machine"
    way = "in plain calls " if stage.steps[0].provider is not None else ""
    return f"{way}at {stage.place}"


def _median(report: Mapping[str, Any], step: str) -> float | None:
    steps: Sequence[Mapping[str, Any]] = report.get("steps", ())
    for each in steps:
        if each.get("name") == step and each.get("landed"):
            return float(each["seconds"]["median"])
    return None


def _usd(bill: Booking) -> Decimal:
    return bill.landed_usd + bill.wasted_usd


def _lines(bill: Booking) -> int:
    return sum(bill.lines.values())
