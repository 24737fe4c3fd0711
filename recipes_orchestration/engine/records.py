"""The record of a task: its times, outcomes, tokens, cost and speed; kept where its results are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ..ledger.task_records import TaskRecord
from ..ledger.tasks import TaskRow, TaskState
from .engine import Engine

__all__ = ["counted", "document_of", "keep_record"]


def keep_record(engine: Engine, task: TaskRow, words: str | None = None) -> None:
    """Keeps in the library what became of a task that is about to be closed.

    `words` say why it is dropped; without any, all that it gave has landed. Again after a kill, it
    takes the place of the first.
    """
    record = engine.ledger.records.of(task.id)
    if record is None:
        return
    if words is None:
        ending = replace(record, state=TaskState.landed, landed_at=datetime.now(UTC))
    else:
        ending = replace(record, state=TaskState.dropped, message=words)
    document = document_of(ending)
    engine.library.tasks.keep(task.recipe, task.fingerprints, task.batch, task.name, document)


def document_of(record: TaskRecord) -> dict[str, Any]:
    """The record as JSON: times in ISO 8601, money as text, `waited_hours` from sent to ended."""
    report = record.report or {}
    steps: Sequence[Mapping[str, Any]] = report.get("steps", [])
    return {
        "name": record.name,
        "recipe": record.recipe,
        "stage": record.stage,
        "batch": record.batch,
        "place": record.place,
        "id": record.remote_id,
        "state": str(record.state),
        "stopped": record.stopped,
        "message": record.message,
        "prepared_at": _told(record.prepared_at),
        "sent_at": _told(record.sent_at),
        "ended_at": _told(record.ended_at),
        "landed_at": _told(record.landed_at),
        "waited_hours": _waited_hours(record),
        "outcomes": _outcomes(steps) if record.lines is None else record.lines,
        "model": record.model,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "cost_usd": _usd(_cost(record)),
        "wasted_usd": _usd(record.wasted_usd),
        "estimate_usd": _usd(record.estimate_usd),
        "steps": steps,
        "peak_memory_mb": report.get("peak_memory_mb"),
        "fingerprints": record.fingerprints,
    }


def counted(outcomes: Mapping[str, int]) -> str:
    """`3 landed, 1 errored`: pages by what became of them."""
    in_order = sorted(outcomes.items(), key=lambda each: (each[0] != "landed", each[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in in_order if count)


def _waited_hours(record: TaskRecord) -> float | None:
    """From being sent to its end, or until now."""
    if record.sent_at is None:
        return None
    end = record.ended_at or record.landed_at or datetime.now(UTC)
    return round(max(0.0, (end - record.sent_at).total_seconds() / 3600), 3)


def _outcomes(steps: Sequence[Mapping[str, Any]]) -> dict[str, int] | None:
    """Of work that nobody bills: pages by what became of them, all steps together."""
    counted: Counter[str] = Counter()
    for step in steps:
        counted.update({kind: int(step.get(kind, 0)) for kind in ("landed", "failed", "left")})
    return dict(counted) or None


def _cost(record: TaskRecord) -> Decimal | None:
    if record.landed_usd is None or record.wasted_usd is None:
        return None
    return record.landed_usd + record.wasted_usd


def _usd(dollars: Decimal | None) -> str | None:
    return None if dollars is None else f"{dollars:f}"


def _told(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
