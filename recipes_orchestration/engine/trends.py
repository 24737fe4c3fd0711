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
from ..stages import Stage, stages_of
from .engine import Engine
from .spending import dollars

__all__ = ["dearer", "slower"]

RECENT, BEFORE = timedelta(days=1), timedelta(days=30)
DEARER, SLOWER = Decimal("1.15"), 1.5
# Fewer say nothing.
FEWEST_BILLS, FEWEST_TASKS, LAST_TASKS = 3, 8, 3


def dearer(engine: Engine, now: datetime) -> Iterable[Cause]:
    """Tasks of the last day that cost over 15 % more than those before let expect.

    Expected is what a line of the same step, model and kind of price cost on average in the 30
    days before.
    """
    groups: dict[tuple[str, str, str, str], list[Booking]] = defaultdict(list)
    for bill in engine.ledger.bookings.all(since=now - BEFORE):
        if sum(bill.lines.values()):
            groups[bill.recipe, bill.step, bill.model, bill.mode].append(bill)
    found: dict[tuple[str, str], str] = {}
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


def slower(engine: Engine) -> Iterable[Cause]:
    """Steps of jobs whose last three tasks took half as long again a page as those before."""
    for recipe in engine.project.recipes.values():
        for stage in stages_of(recipe):
            if engine.project.takes_jobs(stage.place):
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
        if lately > before * SLOWER:
            words = (
                f"{recipe}/{step.name} takes {lately:.1f} seconds a page at {stage.place} over its "
                f"last {LAST_TASKS} tasks, and took {before:.1f} before."
            )
            yield Cause(f"slower/{recipe}/{step.name}/{stage.place}", AlertKind.SLOWER, words)


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
