"""The work of `recipes tasks --all`: what became of each task, from the ledger and the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from ..engine.engine import Engine
from ..engine.records import counted, document_of
from ..engine.spending import dollars
from ..pages.naming import shown
from .opening import opened, recipes_named
from .output import Output, duration

__all__ = ["show_records"]

MOST = 200

_COLUMNS = ("batch", "stage", "place", "id there", "sent", "waited", "state", "outcomes", "tokens")
_NUMBERS = ("cost", "estimate", "seconds a page")


def show_records(project: Path | None, recipe: str | None, *, as_json: bool) -> None:
    """The last 200 tasks, the newest first: times, waits, outcomes, tokens, cost and speed."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        records = _records(engine, None if recipe is None else engine.project.recipe(recipe).name)
    if records:
        columns = [*_COLUMNS, *_NUMBERS]
        output.table(columns, [_row(each) for each in records], left=range(len(_COLUMNS)))
    else:
        output.line("No task was ever prepared.")
    output.document({"tasks": records})


def _records(engine: Engine, recipe: str | None) -> list[dict[str, Any]]:
    """Those of the ledger; where it has few, those too that the library alone knows.

    So tasks of a ledger that was lost are still listed.
    """
    records = [document_of(each) for each in engine.ledger.records.last(recipe, MOST)]
    if len(records) == MOST:
        return records
    known = {each["name"] for each in records}
    for each in recipes_named(engine.project, recipe):
        records += islice(engine.library.tasks.below(each.name, known), 10 * MOST)
    return sorted(records, key=lambda each: str(each["prepared_at"]), reverse=True)[:MOST]


def _row(record: Mapping[str, Any]) -> list[str]:
    sent, waited, stopped = record["sent_at"], record["waited_hours"], record["stopped"]
    tokens = [record["tokens_in"], record["tokens_out"]]
    return [
        shown(record["batch"]),
        f"{record['recipe']}/{record['stage']}",
        record["place"],
        record["id"] or "",
        "" if sent is None else f"{datetime.fromisoformat(sent):%Y-%m-%d %H:%M}",
        "" if waited is None else duration(waited * 3600),
        record["state"] if stopped is None else f"{record['state']} ({stopped})",
        counted(record["outcomes"] or {}),
        "" if None in tokens else f"{tokens[0]:,} in, {tokens[1]:,} out",
        _usd(record["cost_usd"]),
        _usd(record["estimate_usd"]),
        _speed(record["steps"]),
    ]


def _usd(usd: str | None) -> str:
    return "" if usd is None else dollars(Decimal(usd))


def _speed(steps: Sequence[Mapping[str, Any]]) -> str:
    """The least, median and most seconds a page of each step."""
    told = {each["name"]: each["seconds"] for each in steps if each["seconds"]["max"]}
    return "; ".join(
        f"{name} {took['min']:.2g} / {took['median']:.2g} / {took['max']:.2g}"
        for name, took in told.items()
    )
