"""The work of `recipes spend`: what was paid and is reserved, summed up from the ledger."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from ..engine.spending import Cap, caps_of, committed_to, dollars
from ..errors import NotFound
from ..ledger.reservations import Committed
from ..ledger.spend_sums import KEYS, SpendSum
from .opening import opened
from .output import Output

__all__ = ["BY", "show_spend"]

BY = ("recipe", "step", "place", "model", "price")
"""What the sums are told apart by when nothing else is asked for."""

# A table of more rows takes long to draw, and nobody reads it.
_ROWS = 100
_NUMBERS = ("tasks", "tokens_in", "tokens_out")
_MONEY = ("reserved_usd", "booked_usd", "landed_usd", "wasted_usd", "saved_usd")


def show_spend(
    project: Path | None,
    recipe: str | None,
    *,
    by: Sequence[str] = (),
    as_csv: bool = False,
    as_json: bool,
) -> None:
    """Dollars that are reserved, were booked, were wasted of it, and saved by batches."""
    output = Output(as_json=as_json)
    keys = tuple(by) or BY
    for key in keys:
        if key not in KEYS:
            raise NotFound(f'There is no sum by "{key}"; choose of {", ".join(KEYS)}.')
    with opened(project) as engine:
        wanted = None if recipe is None else engine.project.recipe(recipe)
        sums = engine.ledger.spend.sums(keys, None if wanted is None else wanted.name)
        caps = committed_to(engine, caps_of(engine.project, wanted))
    whole = SpendSum(())
    for each in sums:
        whole.add(each)
    if as_csv:
        _write_csv(keys, sums)
        return
    _show(output, keys, sums, whole)
    for cap, committed in caps:
        output.line(_cap_words(cap, committed))
    output.document(
        {
            **{name: str(getattr(whole, name)) for name in _MONEY},
            "rows": [_row(keys, each) for each in sums],
            "caps": [
                {
                    "what": cap.what,
                    "cap_usd": str(cap.usd),
                    "booked_usd": str(committed.booked),
                    "reserved_usd": str(committed.reserved),
                }
                for cap, committed in caps
            ],
        }
    )


def _show(output: Output, keys: Sequence[str], sums: Sequence[SpendSum], whole: SpendSum) -> None:
    if not sums:
        output.line("Nothing has been paid to a provider, and nothing is reserved.")
        return
    columns = ["tasks", "tokens in", "out", "reserved $", "booked $", "of it wasted", "saved"]
    dearest = sorted(sums, key=lambda each: each.booked_usd + each.reserved_usd)[-_ROWS:]
    shown = sorted(dearest, key=lambda each: each.key)
    rows = [[*each.key, *_numbers(each)] for each in shown]
    totals = ["" for _ in keys] + _numbers(whole)
    output.table([*keys, *columns], rows, totals=totals, left=range(len(keys)))
    if len(shown) < len(sums):
        output.line(f"These are the dearest {len(shown)} of {len(sums):,}; --csv has all.")


def _numbers(each: SpendSum) -> list[str]:
    usd = (each.reserved_usd, each.booked_usd, each.wasted_usd, each.saved_usd)
    counts = (each.tasks, each.tokens_in, each.tokens_out)
    return [*(f"{number:,}" for number in counts), *(f"{amount:,.4f}" for amount in usd)]


def _row(keys: Sequence[str], each: SpendSum) -> dict[str, str | int]:
    row: dict[str, str | int] = dict(zip(keys, each.key, strict=True))
    row |= {name: int(getattr(each, name)) for name in _NUMBERS}
    return row | {name: str(getattr(each, name)) for name in _MONEY}


def _write_csv(keys: Sequence[str], sums: Sequence[SpendSum]) -> None:
    writer = csv.DictWriter(sys.stdout, [*keys, *_NUMBERS, *_MONEY], lineterminator="\n")
    writer.writeheader()
    for each in sums:
        row = _row(keys, each)
        writer.writerow({name: _safe(value) for name, value in row.items()})


def _safe(value: str | int) -> str | int:
    """A name that a spreadsheet would take for a formula is told to be text."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t"):
        return f"'{value}"
    return value


def _cap_words(cap: Cap, committed: Committed) -> str:
    left = max(Decimal(0), cap.usd - committed.booked - committed.reserved)
    return (
        f"Of the {dollars(cap.usd)} that {cap.what} may cost {dollars(committed.booked)} are paid, "
        f"{dollars(committed.reserved)} reserved and {dollars(left)} left."
        + (f" {committed.unknown} open tasks are older than the cap." if committed.unknown else "")
    )
