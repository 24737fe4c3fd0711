"""Caps: what a task may cost at most is reserved before it is sent, and no cap is passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_UP, Decimal

import sqlalchemy as sa

from ..errors import OverCap, PlaceError
from ..job_settings import HfJobsSettings
from ..ledger.reservations import (
    Committed,
    Purse,
    Reservation,
    alone,
    committed_within,
    reserve,
)
from ..ledger.task_rows import TaskRow, Within
from ..place_settings import CloudSettings
from ..places.place import Bill, Package
from ..project import Project
from ..recipe import Recipe
from ..stages import Stage
from .bills import booking_of
from .engine import Engine

__all__ = [
    "Cap",
    "LiveBudget",
    "OverCap",
    "caps_of",
    "committed_to",
    "dollars",
    "over_cap",
    "paid_places",
    "reserving",
    "still_over",
]


# The ledger keeps no less.
_BILLIONTH = Decimal("1e-9")


@dataclass(frozen=True)
class Cap:
    """At most so many dollars for what `purse` counts together. `what` says it in words."""

    what: str
    usd: Decimal
    purse: Purse


def caps_of(project: Project, recipe: Recipe | None = None) -> list[Cap]:
    """The caps that hold for a recipe; without one, those of the project and of all recipes."""
    caps: list[Cap] = []
    for each in project.recipes.values() if recipe is None else [recipe]:
        if each.spend is not None:
            caps.append(Cap(f"the recipe {each.name}", each.spend, Purse(recipe=each.name)))
    if project.spend.project is not None:
        caps.append(Cap("the project", Decimal(str(project.spend.project)), Purse()))
    if project.spend.month is not None:
        now = datetime.now(UTC)
        first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        what = f"the project in {now:%B %Y}"
        caps.append(Cap(what, Decimal(str(project.spend.month)), Purse(since=first)))
    return caps


def committed_to(engine: Engine, caps: Sequence[Cap]) -> list[tuple[Cap, Committed]]:
    """How much of each cap is booked and reserved."""
    places = paid_places(engine.project)
    book = engine.ledger.reservations
    return [(cap, book.committed(cap.purse, places)) for cap in caps]


def paid_places(project: Project) -> set[str]:
    """The places that send a bill."""
    paid = (CloudSettings, HfJobsSettings)
    return {name for name, settings in project.places.items() if isinstance(settings, paid)}


def reserving(engine: Engine, stage: Stage, packages: Sequence[Package]) -> Within | None:
    """What writes the reservations of the packages' tasks with them; None without any cap.

    It raises `OverCap` when they do not fit. Raises `PlaceError` when nobody knows what they may
    cost: then no cap could be kept.
    """
    caps = caps_of(engine.project, stage.recipe)
    places = paid_places(engine.project)
    if not caps or (stage.place not in places and not any(each.worst_usd for each in packages)):
        return None
    each_usd = [_worst(stage, package) for package in packages]

    def within(connection: sa.Connection, rows: Sequence[TaskRow]) -> None:
        alone(connection)
        now = datetime.now(UTC)
        reserve(
            connection,
            [
                Reservation(
                    task_id=row.id,
                    recipe=row.recipe,
                    step=next(iter(row.fingerprints), stage.name),
                    batch=row.batch,
                    place=row.place,
                    model=str(package.group.get("model", row.place)),
                    usd=usd,
                    reserved_at=now,
                )
                for row, package, usd in zip(rows, packages, each_usd, strict=True)
            ],
        )
        whole = sum(each_usd, Decimal(0))
        for cap in caps:
            committed = committed_within(connection, cap.purse, places)
            before = replace(committed, reserved=committed.reserved - whole)
            _check(cap, before, whole)  # what it raises takes back what is written here

    return within


@dataclass(frozen=True)
class LiveBudget:
    """What a task may still spend while it lands: its reservation grows and shrinks with it."""

    engine: Engine
    task: TaskRow

    def promise(self, usd: Decimal) -> None:
        """Reserves so much more. Raises `OverCap` when that does not fit under a cap."""
        recipe = self.engine.project.recipes.get(self.task.recipe)
        caps = [
            cap
            for cap in caps_of(self.engine.project, recipe)
            if cap.purse.recipe in (None, self.task.recipe)
        ]
        if not caps:
            return
        task, usd = self.task, usd.quantize(_BILLIONTH, ROUND_UP)
        more = Reservation(
            task_id=task.id,
            recipe=task.recipe,
            step=next(iter(task.fingerprints), task.stage),
            batch=task.batch,
            place=task.place,
            model=str((task.sent or {}).get("group", {}).get("model", task.place)),
            usd=usd,
            reserved_at=datetime.now(UTC),
        )

        def within(connection: sa.Connection) -> None:
            for cap in caps:
                committed = committed_within(connection, cap.purse)
                _check(cap, replace(committed, reserved=committed.reserved - usd), usd)

        self.engine.ledger.reservations.add(more, within)

    def paid(self, promised: Decimal, usd: Decimal) -> None:
        """Of what was promised so much was paid."""
        less = promised.quantize(_BILLIONTH, ROUND_UP) - usd.quantize(_BILLIONTH, ROUND_UP)
        self.engine.ledger.reservations.lower(self.task.id, less)

    def billed(self, bill: Bill) -> None:
        """Books what the task cost so far, and reserves no more for it."""
        self.engine.ledger.bookings.book(booking_of(self.task, bill))


def over_cap(engine: Engine, recipe: Recipe, usd: Decimal) -> OverCap | None:
    """Why so many dollars of the recipe would not fit under its caps at this moment."""
    try:
        for cap, committed in committed_to(engine, caps_of(engine.project, recipe)):
            _check(cap, committed, usd)
    except OverCap as over:
        return over
    return None


def still_over(engine: Engine, stage: Stage, batch: str, pages: int) -> OverCap | None:
    """Why what did not fit before does not fit yet: it need not be packed to know that."""
    usd = engine.over_cap.get((stage.recipe.name, stage.name, batch, pages))
    return None if usd is None else over_cap(engine, stage.recipe, usd)


def _worst(stage: Stage, package: Package) -> Decimal:
    if package.worst_usd is None:
        why = package.worst_unknown or f"what it may cost at {stage.place} is not known"
        raise PlaceError(
            f"Nothing of {stage.name} is sent to {stage.place}, as there is a cap on what may be "
            f"spent and its worst case cannot be reserved. {why[:1].upper()}{why[1:]}."
        )
    return package.worst_usd.quantize(_BILLIONTH, ROUND_UP)


def _check(cap: Cap, committed: Committed, usd: Decimal) -> None:
    """Raises `OverCap` when so much more would not fit."""
    over = committed.booked + committed.reserved + usd - cap.usd
    if over > 0:
        raise OverCap(
            f"Over the cap by {dollars(over)}: this may cost {dollars(usd)}, and of the "
            f"{dollars(cap.usd)} that {cap.what} may cost {dollars(committed.booked)} are paid and "
            f"{dollars(committed.reserved)} reserved for what is open. Raise the cap (spend), or "
            "wait until that has landed",
            usd=usd,
            over=over,
            for_good=committed.booked + usd > cap.usd,
        )
    if committed.unknown:
        raise OverCap(
            f"{committed.unknown} tasks were sent before {cap.what} had a cap, and what they may "
            "cost is not known: nothing is sent until they have landed",
            usd=usd,
            over=Decimal(0),
            for_good=False,
        )


def dollars(usd: Decimal) -> str:
    """Dollars in words: cents, and as many places more as a small amount needs."""
    return f"${usd:,.2f}" if usd == 0 or abs(usd) >= Decimal("0.1") else f"${usd:.6f}"
