"""What Dagster is told about a step's partition, made from the library and from nothing else.

A run, the command line and the rebuilding of events all tell it in these words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from ..engine.engine import Engine
from ..engine.look import BatchView, HeldPage
from ..ledger.spend_sums import SpendSum
from ..pages.naming import shown
from .pages_events import DATA_VERSION_TAG
from .reports import far_metadata
from .task_metadata import task_metadata

__all__ = [
    "CHECK",
    "PartitionReport",
    "check_evaluation",
    "check_result",
    "held_table",
    "materialization",
    "materialize_result",
    "report_partition",
    "step_key",
    "stop_observation",
]

CHECK = "all_pages_landed"
PREVIEW_PAGES = 3
PREVIEW_CHARACTERS = 400
TABLE_ROWS = 50
_SPENT = ("model", "tokens_in", "tokens_out", "cost_usd", "price")


def step_key(recipe: str, step: str) -> dg.AssetKey:
    """The asset key of a recipe's step."""
    return dg.AssetKey([recipe, step])


@dataclass(frozen=True)
class PartitionReport:
    """What there is to say about one step of one batch."""

    key: dg.AssetKey
    partition: str
    complete: bool
    data_version: str
    metadata: dict[str, dg.MetadataValue]
    held: tuple[HeldPage, ...]
    landed: int
    pages: int


def report_partition(engine: Engine, view: BatchView, step: str) -> PartitionReport:
    """Reads the step's landed rows once and says what Dagster should know about them."""
    at = view.steps[step]
    table = engine.library.table(
        view.recipe.name, step, view.batch, columns=["page_id", "key", "value", "seconds", *_SPENT]
    )
    records = [
        record
        for record in engine.library.tasks.of(view.recipe.name, step, view.batch)
        if record["fingerprints"].get(step) == at.fingerprint
    ]
    current = set(at.keys.items())
    rows = [
        row for row in table.to_pylist() if (row["page_id"], row["key"]) in current or not current
    ]
    return PartitionReport(
        key=step_key(view.recipe.name, step),
        partition=view.batch,
        complete=at.complete(view.recipe.max_held),
        data_version=_version_of(row["key"] for row in rows),
        metadata={
            "pages": dg.MetadataValue.int(at.pages),
            "landed": dg.MetadataValue.int(at.landed),
            "held": dg.MetadataValue.int(len(at.held)),
            "rows": dg.MetadataValue.int(len(rows)),
            "seconds": dg.MetadataValue.float(round(sum((row["seconds"] for row in rows), 0.0), 3)),
            **_page_seconds(rows),
            **_spent(rows),
            **_money(engine.ledger.spend.of_batch(view.recipe.name, step, view.batch)),
            **far_metadata(step, records),
            **task_metadata(records),
            "preview": dg.MetadataValue.md(_preview(view, rows)),
            "dagster/uri": dg.MetadataValue.text(
                engine.library.uri(view.recipe.name, step, view.batch)
            ),
            "dagster/partition_row_count": dg.MetadataValue.int(len(rows)),
        },
        held=tuple(at.held),
        landed=at.landed,
        pages=at.pages,
    )


def _page_seconds(rows: Sequence[Mapping[str, Any]]) -> dict[str, dg.MetadataValue]:
    """The least, median and most that a page took; none where that is not known page by page."""
    took = [row["seconds"] for row in rows if row["seconds"]]
    if not took:
        return {}
    return {
        "page_seconds_min": dg.MetadataValue.float(round(min(took), 3)),
        "page_seconds_median": dg.MetadataValue.float(round(median(took), 3)),
        "page_seconds_max": dg.MetadataValue.float(round(max(took), 3)),
    }


def _money(spent: SpendSum | None) -> dict[str, dg.MetadataValue]:
    """What `recipes spend` says of the partition, as numbers, so that the UI can plot them.

    Saved is what plain calls would have cost more.
    """
    if spent is None:
        return {}
    names = ("reserved_usd", "booked_usd", "wasted_usd", "saved_usd")
    return {name: dg.MetadataValue.float(float(getattr(spent, name))) for name in names}


def _spent(rows: Sequence[Mapping[str, Any]]) -> dict[str, dg.MetadataValue]:
    """What the results cost, where a model or a machine that is paid gave them."""
    models = sorted({row["model"] for row in rows if row["model"] is not None})
    if not models:
        return {}
    usd = sum((row["cost_usd"] for row in rows if row["cost_usd"] is not None), Decimal(0))
    return {
        "model": dg.MetadataValue.text(", ".join(models)),
        "cost_usd": dg.MetadataValue.float(float(usd)),
        "tokens_in": dg.MetadataValue.int(sum(row["tokens_in"] or 0 for row in rows)),
        "tokens_out": dg.MetadataValue.int(sum(row["tokens_out"] or 0 for row in rows)),
        "price": dg.MetadataValue.text(
            ", ".join(sorted({row["price"] for row in rows if row["price"] is not None}))
        ),
    }


def materialize_result(report: PartitionReport, checked: bool) -> dg.MaterializeResult[Any]:
    """The partition's materialization inside a run, with its check when that was selected."""
    return dg.MaterializeResult(
        asset_key=report.key,
        metadata=report.metadata,
        data_version=dg.DataVersion(report.data_version),
        check_results=[check_result(report)] if checked else [],
    )


def stop_observation(report: PartitionReport, words: str) -> dg.AssetObservation:
    """That a person stopped the step, and where the partition stands by it."""
    counts = {name: report.metadata[name] for name in ("pages", "landed", "held")}
    return dg.AssetObservation(
        asset_key=report.key,
        partition=report.partition,
        description=words,
        metadata={"stopped": dg.MetadataValue.text(words), **counts},
    )


def check_result(report: PartitionReport) -> dg.AssetCheckResult:
    """`all_pages_landed` inside a run."""
    return dg.AssetCheckResult(
        asset_key=report.key,
        check_name=CHECK,
        passed=_all_landed(report),
        severity=dg.AssetCheckSeverity.WARN,
        description=_check_words(report),
        metadata=_check_metadata(report),
    )


def materialization(report: PartitionReport) -> dg.AssetMaterialization:
    """The same materialization outside a run."""
    return dg.AssetMaterialization(
        asset_key=report.key,
        partition=report.partition,
        metadata=report.metadata,
        tags={DATA_VERSION_TAG: report.data_version},
    )


def check_evaluation(
    report: PartitionReport, target: AssetCheckEvaluationTargetMaterializationData | None = None
) -> dg.AssetCheckEvaluation:
    """`all_pages_landed` outside a run."""
    return dg.AssetCheckEvaluation(
        asset_key=report.key,
        check_name=CHECK,
        passed=_all_landed(report),
        severity=dg.AssetCheckSeverity.WARN,
        description=_check_words(report),
        metadata=_check_metadata(report),
        partition=report.partition,
        target_materialization_data=target,
    )


def held_table(held: Sequence[HeldPage]) -> str:
    """Held pages and their reasons as a Markdown table of at most 50 rows."""
    rows = ["| page | step | reason |", "| --- | --- | --- |"]
    rows += [
        f"| {_cell(page.page_id)} | {page.step} | {_cell(page.words)} |"
        for page in held[:TABLE_ROWS]
    ]
    if len(held) > TABLE_ROWS:
        rows.append(f"| and {len(held) - TABLE_ROWS} more | | see: recipes held |")
    return "\n".join(rows)


def _all_landed(report: PartitionReport) -> bool:
    """Whether all pages have landed but those that a person has set aside."""
    return report.landed + _aside(report) == report.pages


def _aside(report: PartitionReport) -> int:
    return sum(page.aside for page in report.held)


def _check_words(report: PartitionReport) -> str:
    if _all_landed(report) and (aside := _aside(report)):
        return f"{report.landed} pages have landed and {aside} were set aside by a person."
    if _all_landed(report):
        return f"All {report.pages} pages have landed."
    words = f"{report.landed} of {report.pages} pages have landed"
    if not report.held:
        return f"{words}."
    return f"{words}; {len(report.held)} wait for a person:\n\n{held_table(report.held)}"


def _check_metadata(report: PartitionReport) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "pages": report.pages,
        "landed": report.landed,
        "held": len(report.held),
    }
    if report.held:
        metadata["held pages"] = dg.MetadataValue.md(held_table(report.held))
    return metadata


def _version_of(keys: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:16]


def _preview(view: BatchView, rows: Sequence[dict[str, Any]]) -> str:
    """A few pages' text beside their names."""
    by_page = {row["page_id"]: row["value"] for row in rows}
    wanted = [page_id for page_id in view.pages if page_id in by_page][:PREVIEW_PAGES]
    lines = ["| page | result |", "| --- | --- |"]
    lines += [f"| {_cell(page_id)} | {_cell(_told(by_page[page_id]))} |" for page_id in wanted]
    return "\n".join(lines) if wanted else "No page has landed."


def _told(value: str) -> str:
    """The text of a value where it has one, else the start of its JSON."""
    try:
        loaded = json.loads(value)
    except ValueError:
        loaded = value
    if isinstance(loaded, dict):
        if isinstance(loaded.get("text"), str):
            return loaded["text"][:PREVIEW_CHARACTERS]
        if isinstance(loaded.get("names"), list):
            return ", ".join(str(name.get("text")) for name in loaded["names"])[:PREVIEW_CHARACTERS]
        if isinstance(loaded.get("lines"), list):
            return f"{len(loaded['lines'])} lines"
    return value[:PREVIEW_CHARACTERS]


def _cell(text: str) -> str:
    """Text from pages and file names made harmless inside a Markdown table."""
    safe = shown(" ".join(text.split()))
    for mark in ("\\", "|", "<", "`", "[", "*", "_", "!"):
        safe = safe.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return safe
