"""The sheet as a table, in Markdown and as JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from .durations import duration
from .sheet import Sheet, SheetLine
from .token_estimates import Money, Spread

__all__ = ["COLUMNS", "TEXT_COLUMNS", "dollars", "markdown", "notes", "rows", "sheet_document"]

COLUMNS = (
    *("stage", "place", "model", "batches", "pages", "reused", "tasks"),
    *("time", "here", "batch $", "plain $"),
)
TEXT_COLUMNS = (0, 1, 2)
"""The columns that hold no numbers."""

_NONE = "-"


def rows(sheet: Sheet) -> list[list[str]]:
    """A row for each stage; what is not known is a dash."""
    return [
        [
            line.stage,
            line.place,
            line.model or _NONE,
            *(f"{number:,}" for number in (line.batches, line.pages, line.reused, line.tasks)),
            _time(line.seconds),
            _time(line.local_seconds),
            dollars(line.batch) or _NONE,
            dollars(line.plain or (None if line.model else line.usd)) or _NONE,
        ]
        for line in sheet.lines
    ]


def notes(sheet: Sheet) -> list[str]:
    """What is to be known beside the table: what it costs in all, and what was assumed."""
    found = [f"{line.stage}: {'; '.join(line.words)}." for line in sheet.lines if line.words]
    total = sheet.usd
    if total is not None:
        found.append(f"It costs {_span(total)}, the way it is set to go.")
    if sheet.unpriced:
        found.append(f"What {', '.join(sheet.unpriced)} costs is not known.")
    return found


def markdown(sheet: Sheet) -> str:
    """The whole sheet."""
    lines = [
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "|".join("---" if at in TEXT_COLUMNS else "---:" for at in range(len(COLUMNS))) + "|",
        *("| " + " | ".join(map(_cell, row)) + " |" for row in rows(sheet)),
    ]
    return "\n".join([*lines, "", *(f"- {_cell(note)}" for note in notes(sheet))])


def dollars(money: Money | None) -> str | None:
    """`1.20`, or `0.80 - 1.60` where the bounds are apart."""
    if money is None:
        return None
    low, mid, high = (_usd(each) for each in (money.low, money.mid, money.high))
    return mid if low == high else f"{mid} ({low} - {high})"


def _span(money: Money) -> str:
    low, mid, high = (_usd(each) for each in (money.low, money.mid, money.high))
    return f"about ${mid}" if low == high else f"about ${mid}, between ${low} and ${high}"


def _usd(usd: Decimal) -> str:
    # Small sums with two figures that mean something.
    return (
        f"{usd:,.2f}"
        if usd >= 1 or not usd
        else f"{usd:.2g}"
        if usd < Decimal("0.01")
        else f"{usd:.3f}"
    )


def _time(seconds: float | None) -> str:
    return _NONE if seconds is None else duration(seconds)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def sheet_document(sheet: Sheet) -> dict[str, Any]:
    """The sheet as JSON; dollars are texts, so that none of their digits is lost."""
    return {
        "recipe": sheet.recipe,
        "folder": sheet.scope.folder,
        "now": sheet.scope.now,
        "usd": _money(sheet.usd),
        "stages": [_line(line) for line in sheet.lines],
    }


def _line(line: SheetLine) -> dict[str, Any]:
    return {
        "stage": line.stage,
        "steps": list(line.steps),
        "place": line.place,
        "model": line.model,
        "batches": line.batches,
        "pages": line.pages,
        "reused": line.reused,
        "tasks": line.tasks,
        "seconds": line.seconds,
        "local_seconds": line.local_seconds,
        "tokens_in": _spread(line.tokens_in),
        "tokens_out": _spread(line.tokens_out),
        "batch_usd": _money(line.batch),
        "plain_usd": _money(line.plain),
        "usd": _money(line.usd),
        "sampled": line.sampled,
        "words": list(line.words),
    }


def _money(money: Money | None) -> dict[str, str] | None:
    if money is None:
        return None
    return {name: f"{getattr(money, name):.6f}" for name in ("low", "mid", "high")}


def _spread(spread: Spread | None) -> dict[str, int] | None:
    return spread and {name: round(getattr(spread, name)) for name in ("low", "mid", "high")}
