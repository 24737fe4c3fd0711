"""The work of `recipes spend`: what was paid, summed up from the bookings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ..ledger.bookings import Booking
from .opening import opened
from .output import Output

__all__ = ["show_spend"]


@dataclass
class _Sum:
    """Bookings of one recipe, step, model and price basis."""

    tasks: int = 0
    landed: Decimal = Decimal(0)
    wasted: Decimal = Decimal(0)
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, booking: Booking) -> None:
        self.tasks += 1
        self.landed += booking.landed_usd
        self.wasted += booking.wasted_usd
        self.tokens_in += booking.tokens_in
        self.tokens_out += booking.tokens_out


def show_spend(project: Path | None, recipe: str | None, *, as_json: bool) -> None:
    """Dollars by recipe, step, place, model and the kind of price."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        wanted = None if recipe is None else engine.project.recipe(recipe).name
        bookings = engine.ledger.bookings.all(wanted)
    sums: dict[tuple[str, str, str, str, str], _Sum] = defaultdict(_Sum)
    for each in bookings:
        sums[each.recipe, each.step, each.place, each.model, each.basis].add(each)
    landed = sum((each.landed for each in sums.values()), Decimal(0))
    wasted = sum((each.wasted for each in sums.values()), Decimal(0))
    if not sums:
        output.line("Nothing has been paid to a provider.")
    else:
        output.table(
            [
                "recipe",
                "step",
                "place",
                "model",
                "price",
                "tasks",
                "tokens in",
                "out",
                "$",
                "wasted",
            ],
            [
                [*key, f"{s.tasks:,}", f"{s.tokens_in:,}", f"{s.tokens_out:,}", *_usd(s)]
                for key, s in sorted(sums.items())
            ],
            totals=["", "", "", "", "", "", "", "", f"{landed:.4f}", f"{wasted:.4f}"],
            left=range(5),
        )
    output.document(
        {
            "landed_usd": str(landed),
            "wasted_usd": str(wasted),
            "rows": [
                {
                    "recipe": key[0],
                    "step": key[1],
                    "place": key[2],
                    "model": key[3],
                    "price": key[4],
                    "tasks": each.tasks,
                    "tokens_in": each.tokens_in,
                    "tokens_out": each.tokens_out,
                    "landed_usd": str(each.landed),
                    "wasted_usd": str(each.wasted),
                }
                for key, each in sorted(sums.items())
            ],
        }
    )


def _usd(row: _Sum) -> list[str]:
    return [f"{row.landed:.4f}", f"{row.wasted:.4f}"]
