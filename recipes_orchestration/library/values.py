"""Landed values that stay in their table until each is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .results import Table, value_of

__all__ = ["LandedValues"]

# Texts that are made of the table at a time: pages are asked for in its order as a rule, and one
# alone takes four times as long.
_TOGETHER = 16


class LandedValues(Mapping[str, Any]):
    """The values of a table by page id, as far as they lie under the key that is wanted of it.

    Thousands of values as Python objects take four times the memory that their table takes.
    """

    def __init__(self, table: Table, wanted: Mapping[str, str]) -> None:
        key_of = wanted.get
        pages = table.column("page_id").to_pylist()
        keys = table.column("key").to_pylist()
        self._rows = {
            page_id: row
            for row, (page_id, key) in enumerate(zip(pages, keys, strict=True))
            if key_of(page_id) == key
        }
        self._column: Any = table.column("value")
        self._texts: tuple[int, list[str]] = (0, [])

    def __getitem__(self, page_id: str) -> Any:
        row = self._rows[page_id]
        first, texts = self._texts
        if not first <= row < first + len(texts):
            first, texts = row, self._column.slice(row, _TOGETHER).to_pylist()
            self._texts = first, texts  # at once, as threads ask too
        return value_of(texts[row - first])

    def __contains__(self, page_id: object) -> bool:
        return page_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
