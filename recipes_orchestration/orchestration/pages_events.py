"""What Dagster is told about the pages of a source, made from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import dagster as dg

from ..engine.discover import data_version
from ..engine.engine import Engine
from ..ledger.pages import BatchPage

__all__ = [
    "DATA_VERSION_TAG",
    "batch_materializations",
    "batches_of",
    "changed_batches",
    "known_version",
    "pages_key",
]

DATA_VERSION_TAG = "dagster/data_version"


def pages_key(source: str) -> dg.AssetKey:
    """The asset key of a source's pages."""
    return dg.AssetKey([source, "pages"])


def batches_of(source: str) -> dg.DynamicPartitionsDefinition:
    """The page batches of a source as partitions, `<folder>/<0001>`."""
    return dg.DynamicPartitionsDefinition(name=source)


def batch_materializations(
    engine: Engine, source: str, batches: Iterable[str]
) -> Iterator[dg.AssetMaterialization]:
    """`<source>/pages` of each batch: counts, and a data version made of the pages' hashes."""
    for batch in batches:
        pages, present = _pages(engine, source, batch)
        yield dg.AssetMaterialization(
            asset_key=pages_key(source),
            partition=batch,
            metadata={
                "pages": len(present),
                "gone": len(pages) - len(present),
                "unreadable": sum(1 for page in present if page.problem),
                "dagster/partition_row_count": len(present),
            },
            tags={DATA_VERSION_TAG: data_version(present)},
        )


def changed_batches(
    engine: Engine, instance: dg.DagsterInstance, source: str, batches: Iterable[str]
) -> list[str]:
    """Those of the batches whose pages are no longer what Dagster was last told of them."""
    return [
        batch
        for batch in batches
        if known_version(instance, pages_key(source), batch)
        != data_version(_pages(engine, source, batch)[1])
    ]


def _pages(engine: Engine, source: str, batch: str) -> tuple[list[BatchPage], list[BatchPage]]:
    """All pages of the batch, and those that are not gone."""
    pages = engine.ledger.pages.in_batch(source, batch)
    return pages, [page for page in pages if not page.gone]


def known_version(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str) -> str | None:
    """The data version of the latest materialization that Dagster knows of the partition."""
    record = instance.get_latest_data_version_record(key, partition_key=partition)
    event = None if record is None else record.asset_materialization
    return None if event is None else (event.tags or {}).get(DATA_VERSION_TAG)
