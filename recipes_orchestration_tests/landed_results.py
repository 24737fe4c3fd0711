"""A library with a few landed results, for tests of what is exported from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recipes_orchestration.library import Library, Result
from recipes_orchestration.recipe import Recipe, Step, page_key

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECIPE = Recipe(
    "letters",
    "letters",
    (Step("lines", "lines", "1"), Step("read", "read", "1", needs=("lines",)),
     Step("embed", "embed", "1", needs=("read",))),
)  # fmt: skip


def sha(page: str) -> str:
    return f"sha of {page}"


def row(page: str, step: str, value: Any, **other: Any) -> Result:
    key = page_key(RECIPE.fingerprint(step), sha(page))
    return Result(page, key, value, 0.5, "t1", NOON, **other)


def landed(root: Path, step: str, values: dict[str, Any], batch: str = "f/0001") -> Library:
    library = Library(str(root / "library"))
    rows = [row(page, step, value) for page, value in values.items()]
    library.land("letters", step, batch, "t1", None, rows)
    return library


def batch_of(pages: Iterator[str] | Any, key: str = "f/0001") -> tuple[str, dict[str, str | None]]:
    return key, {page: sha(page) for page in pages}


def all_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def lines_value(text: str) -> dict[str, Any]:
    return {
        "text": text,
        "width": 1000,
        "height": 1500,
        "lines": [
            {
                "text": text,
                "bbox": [10, 20, 500, 60],
                "polygon": [[10.4, 20.6], [500, 22], [499, 60], [-3, 2000]],
                "baseline": [[10, 55], [500, 56]],
                "confidence": 0.98765,
            },
            {"text": "two", "bbox": [10.2, 80, 500, 120], "polygon": [], "confidence": 7},
            {"text": "nowhere", "bbox": None},
        ],
    }
