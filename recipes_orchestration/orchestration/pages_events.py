"""What Dagster is told about the pages of a source, made from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import dagster as dg

from ..engine.discover import data_version
from ..engine.engine import Engine

__all__ = ["DATA_VERSION_TAG", "batch_materializations", "batches_of", "pages_key"]

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
        pages = engine.ledger.pages.in_batch(source, batch)
        present = [page for page in pages if not page.gone]
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
