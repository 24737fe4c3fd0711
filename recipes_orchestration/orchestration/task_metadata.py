"""The records of a step's tasks, as its materialization shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import dagster as dg

from ..engine.durations import duration
from ..engine.records import counted
from ..engine.spending import dollars

__all__ = ["task_metadata"]

MOST_ROWS = 50

_COLUMNS = ("id", "prepared", "sent", "ended", "landed", "waited", "outcomes", "tokens", "cost")


def task_metadata(records: Sequence[Mapping[str, Any]]) -> dict[str, dg.MetadataValue]:
    """Times, waits, outcomes and costs of the tasks of a step of a batch; empty without any.

    `records` are as `document_of` makes them. Waited is what the longest of them did. Cost is held
    against the estimate for those tasks that have both.
    """
    if not records:
        return {}
    waited = [each["waited_hours"] for each in records if each["waited_hours"] is not None]
    outcomes = sum((Counter(each["outcomes"] or {}) for each in records), Counter[str]())
    metadata: dict[str, dg.MetadataValue] = {
        "tasks": dg.MetadataValue.int(len(records)),
        "outcomes": dg.MetadataValue.text(counted(outcomes)),
        "task_records": dg.MetadataValue.md(_table(records)),
        **_times(records),
        **_estimate(records),
    }
    if waited:
        metadata["waited_hours"] = dg.MetadataValue.float(max(waited))
    return metadata


def _times(records: Sequence[Mapping[str, Any]]) -> dict[str, dg.MetadataValue]:
    """When the first was prepared and sent, and the last had ended and landed."""
    metadata: dict[str, dg.MetadataValue] = {}
    for name, which in (("prepared", min), ("sent", min), ("ended", max), ("landed", max)):
        if times := [datetime.fromisoformat(at) for each in records if (at := each[f"{name}_at"])]:
            metadata[f"{name}_at"] = dg.MetadataValue.timestamp(which(times))
    return metadata


def _estimate(records: Sequence[Mapping[str, Any]]) -> dict[str, dg.MetadataValue]:
    both = [
        (Decimal(each["cost_usd"]), Decimal(each["estimate_usd"]))
        for each in records
        if each["cost_usd"] is not None and each["estimate_usd"] is not None
    ]
    estimate = sum((thought for _, thought in both), Decimal(0))
    if not estimate:
        return {}
    cost = sum((paid for paid, _ in both), Decimal(0))
    return {
        "estimate_usd": dg.MetadataValue.float(float(estimate)),
        "cost_against_estimate": dg.MetadataValue.float(round(float(cost / estimate), 4)),
    }


def _table(records: Sequence[Mapping[str, Any]]) -> str:
    rows = [f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}"]
    rows += [f"| {' | '.join(_row(each))} |" for each in records[:MOST_ROWS]]
    if len(records) > MOST_ROWS:
        rows.append(f"| and {len(records) - MOST_ROWS} more: recipes tasks --all |")
    return "\n".join(rows)


def _row(record: Mapping[str, Any]) -> list[str]:
    waited, cost, estimate = (record[n] for n in ("waited_hours", "cost_usd", "estimate_usd"))
    tokens = [record["tokens_in"], record["tokens_out"]]
    of = "" if estimate is None else f" of {dollars(Decimal(estimate))}"
    return [
        f"{record['place']} {record['id'] or ''}".replace("|", " "),
        *(_at(record[f"{name}_at"]) for name in ("prepared", "sent", "ended", "landed")),
        "" if waited is None else duration(waited * 3600),
        counted(record["outcomes"] or {}),
        "" if None in tokens else f"{tokens[0]:,} in, {tokens[1]:,} out",
        "" if cost is None else f"{dollars(Decimal(cost))}{of}",
    ]


def _at(time: str | None) -> str:
    return "" if time is None else f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S}"
