"""A small source and its ledger, as the tests of discovery look at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine import probing
from recipes_orchestration.engine.discover import Discovered, discover
from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.page_rows import PageRow
from recipes_orchestration.pages.source import Source

from .page_files import jpeg

__all__ = ["batches", "counts", "look", "put", "reads", "rows", "scans"]


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Three folders of three pages each; no two pages are equal."""
    root = tmp_path / "scans"
    for number, folder in enumerate(("a", "a/deep", "b")):
        for page in (1, 2, 10):
            put(root / folder / f"p{page}.jpg", jpeg(number * 20 + page))
    return root


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened, in any order."""
    opened: list[str] = []
    real = probing._probed

    def counted(reader: Any, entry: Any) -> Any:
        opened.append(entry.file)
        return real(reader, entry)

    monkeypatch.setattr(probing, "_probed", counted)
    return opened


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def look(root: Path, ledger: Ledger, **options: Any) -> Discovered:
    return discover(Source("scans", str(root)), ledger, **options)


def rows(ledger: Ledger) -> dict[str, PageRow]:
    return {
        row.page_id: row
        for folder in ledger.pages.folders("scans")
        for row in ledger.pages.rows_of_folder("scans", folder)
    }


def batches(ledger: Ledger) -> dict[str, list[str]]:
    return {
        batch.key: [row.page_id for row in pages]
        for batch, pages in ledger.pages.iter_batches("scans")
    }


def counts(seen: Discovered) -> tuple[int, int, int, int]:
    return seen.new, seen.changed, seen.gone, seen.unchanged
