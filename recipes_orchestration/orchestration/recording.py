"""Tells a Dagster instance, outside any run, what the ledger and the library hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

import dagster as dg
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

from ..engine.engine import Engine
from ..engine.look import BatchView
from ..engine.status import iter_views
from ..recipe import Recipe
from .events import check_evaluation, materialization, report_partition, stop_observation
from .pages_events import batch_materializations, known_version, pages_key

__all__ = ["rebuild_events", "record_pages", "record_stopped", "record_view"]

# Dynamic partitions are added by so many at once: one statement each.
TOGETHER = 500


def record_pages(
    engine: Engine, instance: dg.DagsterInstance, source: str, batches: Iterable[str]
) -> int:
    """Adds the partitions of the batches and materializes their pages; gives how many."""
    told = 0
    todo = iter(batches)
    while some := list(islice(todo, TOGETHER)):
        instance.add_dynamic_partitions(source, sorted(some))
        for event in batch_materializations(engine, source, some):
            instance.report_runless_asset_event(event)
            told += 1
    return told


def record_view(
    engine: Engine, instance: dg.DagsterInstance, view: BatchView, steps: Iterable[str]
) -> int:
    """Materializes the steps of the batch that are complete; gives how many.

    Says nothing of a partition that Dagster already knows with the same data version, and
    records the check of each step in any case when it says something new.
    """
    recorded = 0
    for step in steps:
        report = report_partition(engine, view, step)
        if not report.complete:
            if report.held:
                _report_check(instance, check_evaluation(report))
            continue
        if known_version(instance, report.key, view.batch) == report.data_version:
            continue
        instance.report_runless_asset_event(materialization(report))
        _report_check(instance, check_evaluation(report))
        recorded += 1
    return recorded


def record_stopped(
    engine: Engine,
    instance: dg.DagsterInstance,
    view: BatchView,
    steps: Iterable[str],
    words: str,
) -> None:
    """Observes, on each of the steps that is not complete, that a person stopped it."""
    for step in steps:
        if not view.steps[step].complete(view.recipe.max_held):
            report = report_partition(engine, view, step)
            instance.report_runless_asset_event(stop_observation(report, words))


def rebuild_events(
    engine: Engine,
    instance: dg.DagsterInstance,
    recipes: Iterable[Recipe],
    *,
    on_batch: Callable[[str, str], None] | None = None,
) -> int:
    """Brings back every partition and materialization from ledger and library; gives how many.

    What Dagster still knows is left as it is.
    """
    rebuilt = 0
    for recipe in recipes:
        known = instance.get_materialized_partitions(pages_key(recipe.source))
        batches = [row.key for row in engine.ledger.pages.batches(recipe.source)]
        instance.add_dynamic_partitions(recipe.source, sorted(batches))
        rebuilt += record_pages(
            engine, instance, recipe.source, [key for key in batches if key not in known]
        )
        for batch, view in iter_views(engine, recipe):
            rebuilt += record_view(engine, instance, view, view.steps)
            if on_batch is not None:
                on_batch(recipe.name, batch.key)
    return rebuilt


def _report_check(instance: dg.DagsterInstance, evaluation: dg.AssetCheckEvaluation) -> None:
    """Reports a check outside a run, in the place of the last one that was reported so.

    Dagster keeps one evaluation a check, partition and run, and all that are outside a run have
    the run "": a second one of a partition would break its index. The event log keeps both.
    """
    storage = instance.event_log_storage
    if isinstance(storage, SqlEventLogStorage):
        table = AssetCheckExecutionsTable.c
        earlier = AssetCheckExecutionsTable.delete().where(
            table.asset_key == evaluation.asset_key.to_string(),
            table.check_name == evaluation.check_name,
            table.run_id == "",
            table.partition == evaluation.partition,
        )
        with storage.index_connection() as connection:
            connection.execute(earlier)
    instance.report_runless_asset_event(evaluation)
