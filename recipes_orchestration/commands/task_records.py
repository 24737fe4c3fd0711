"""The work of `recipes tasks --all`: what became of each task, from the ledger alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..engine.spending import dollars
from ..ledger.task_records import TaskRecord
from ..pages.naming import shown
from .opening import opened
from .output import Output, duration

__all__ = ["show_records"]

MOST = 200


def show_records(project: Path | None, recipe: str | None, *, as_json: bool) -> None:
    """The last 200 tasks, the newest first: times, waits, outcomes, tokens, cost and speed."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        wanted = None if recipe is None else engine.project.recipe(recipe).name
        records = engine.ledger.records.last(wanted, MOST)
    if records:
        columns = ["batch", "stage", "place", "id there", "sent", "waited", "state", "outcomes"]
        columns += ["cost", "seconds a page"]
        output.table(columns, [_row(each) for each in records], left=range(8))
    else:
        output.line("No task was ever prepared.")
    output.document({"tasks": [_document(each) for each in records]})


def _row(record: TaskRecord) -> list[str]:
    cost = _cost(record)
    return [
        shown(record.batch),
        f"{record.recipe}/{record.stage}",
        record.place,
        record.remote_id or "",
        "" if record.sent_at is None else f"{record.sent_at:%Y-%m-%d %H:%M}",
        duration(_waited(record)) if record.sent_at is not None else "",
        record.state if record.stopped is None else f"{record.state} ({record.stopped})",
        ", ".join(f"{count:,} {kind}" for kind, count in (record.lines or {}).items() if count),
        "" if cost is None else dollars(cost),
        "; ".join(
            f"{name} {told['min']:.2g} / {told['median']:.2g} / {told['max']:.2g}"
            for name, told in _seconds(record).items()
        ),
    ]


def _document(record: TaskRecord) -> dict[str, Any]:
    cost = _cost(record)
    report = record.report or {}
    return {
        "name": record.name,
        "recipe": record.recipe,
        "stage": record.stage,
        "batch": record.batch,
        "place": record.place,
        "id": record.remote_id,
        "state": record.state,
        "stopped": record.stopped,
        "message": record.message,
        "prepared_at": record.prepared_at,
        "sent_at": record.sent_at,
        "ended_at": record.ended_at,
        "landed_at": record.landed_at,
        "waited_hours": None if record.sent_at is None else round(_waited(record) / 3600, 3),
        "outcomes": record.lines,
        "model": record.model,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "cost_usd": None if cost is None else str(cost),
        "wasted_usd": None if record.wasted_usd is None else str(record.wasted_usd),
        "estimate_usd": None if record.estimate_usd is None else str(record.estimate_usd),
        "steps": report.get("steps", []),
        "peak_memory_mb": report.get("peak_memory_mb"),
    }


def _waited(record: TaskRecord) -> float:
    """From being sent to its end, or until now, in seconds."""
    assert record.sent_at is not None
    end = record.ended_at or record.landed_at or datetime.now(UTC)
    return max(0.0, (end - record.sent_at).total_seconds())


def _cost(record: TaskRecord) -> Decimal | None:
    if record.landed_usd is None or record.wasted_usd is None:
        return None
    return record.landed_usd + record.wasted_usd


def _seconds(record: TaskRecord) -> dict[str, Mapping[str, float]]:
    """Seconds a page of each step that the far side told of."""
    steps: list[Mapping[str, Any]] = (record.report or {}).get("steps", [])
    return {each["name"]: each["seconds"] for each in steps if each.get("landed")}
