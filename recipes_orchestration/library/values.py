"""Landed values that stay in their table until each is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .results import Pair, Table, pairs_of, value_of

__all__ = ["LandedValues"]


class LandedValues(Mapping[Pair, Any]):
    """The values of a table by page id and key, as far as they are among the pairs that are wanted.

    Thousands of values as Python objects take four times the memory that their table takes.
    """

    def __init__(self, table: Table, wanted: Collection[Pair]) -> None:
        # One of an equal pair is kept, the caller's: the other's texts can go.
        known = {pair: pair for pair in wanted}
        found = map(known.get, pairs_of(table))
        self._rows = {pair: row for row, pair in enumerate(found) if pair is not None}
        self._texts: Any = table.column("value").combine_chunks()

    def __getitem__(self, pair: Pair) -> Any:
        return value_of(self._texts[self._rows[pair]].as_py())

    def __contains__(self, pair: object) -> bool:
        return pair in self._rows

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
