"""Landed values that stay in their files until each is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from .parquet import read_columns
from .results import Pair, Table, pairs_of, value_of
from .store import Store, VanishedError, unreadable

__all__ = ["LandedValues", "values_in_files", "values_in_table"]

# Texts that are made of a column at a time: pages are asked for in its order as a rule, and one
# alone takes four times as long.
_TOGETHER = 16
# What is read of a file at a time.
_BYTES, _FEWEST, _MOST = 8_000_000, 64, 1000


class _Texts(Protocol):
    """The column of values, by rows."""

    def some(self, row: int) -> list[str]:
        """The texts of the row and of a few that come after it."""
        ...


class LandedValues(Mapping[str, Any]):
    """The values by page id of what has landed, each made when it is asked for. `rows` are theirs.

    Thousands of values as Python objects take four times the memory that their table takes.
    """

    def __init__(self, rows: Mapping[str, int], texts: _Texts) -> None:
        self._rows = rows
        self._texts = texts
        self._some: tuple[int, list[str]] = (0, [])

    def __getitem__(self, page_id: str) -> Any:
        row = self._rows[page_id]
        first, texts = self._some
        if not first <= row < first + len(texts):
            first, texts = self._some = row, self._texts.some(row)  # at once: threads ask too
        return value_of(texts[row - first])

    def __contains__(self, page_id: object) -> bool:
        return page_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def values_in_files(store: Store, folder: str, wanted: Mapping[str, str]) -> LandedValues | None:
    """The values in a folder's result files of the pages that landed under the key wanted of them.

    None when one of them landed more than once so. Raises `VanishedError` when the files change.
    """
    contents: dict[str, Any] = {}
    pairs: list[Pair] = []
    for name in store.names(folder):
        path = f"{store.root}/{folder}/{name}"
        stream = store.open(folder, name)
        if stream is None:
            raise VanishedError(path)
        try:
            with stream:
                contents[path] = pa.py_buffer(stream.read())
            with pq.ParquetFile(pa.BufferReader(contents[path])) as file:
                pairs += pairs_of(read_columns(file, ("page_id", "key"), path))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unreadable(path, error) from error
    rows = _rows_of(pairs, wanted)
    if len(rows) < len(pairs) and sum(wanted.get(page) == key for page, key in pairs) > len(rows):
        return None
    return LandedValues(rows, _TextsInFiles(contents))


def values_in_table(table: Table, wanted: Mapping[str, str]) -> LandedValues:
    """The same of a table with one row for each page and key."""
    return LandedValues(
        _rows_of(list(pairs_of(table)), wanted), _TextsInTable(table.column("value"))
    )


def _rows_of(pairs: Sequence[Pair], wanted: Mapping[str, str]) -> dict[str, int]:
    key_of = wanted.get
    return {page_id: row for row, (page_id, key) in enumerate(pairs) if key_of(page_id) == key}


class _TextsInTable:
    """A column that is in memory."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def some(self, row: int) -> list[str]:
        """See `_Texts`."""
        return self._column.slice(row, _TOGETHER).to_pylist()


class _TextsInFiles:
    """The column as it lies in Parquet files, whose bytes are in memory: a quarter of the texts.

    Read on as later rows are asked for; whoever asks in another order is given all of it, in
    memory. `contents` are the bytes by the files' paths.
    """

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._contents = contents
        self._lock = threading.Lock()
        self._portions = self._read()
        # The last two portions with their first rows: threads are not quite in order.
        self._last: list[tuple[int, Any]] = []
        self._whole: _TextsInTable | None = None

    def some(self, row: int) -> list[str]:
        """See `_Texts`."""
        with self._lock:
            if self._whole is None:
                while not self._last or row >= self._last[-1][0] + len(self._last[-1][1]):
                    first = sum((self._last[-1][0], len(self._last[-1][1]))) if self._last else 0
                    self._last = [*self._last[-1:], (first, next(self._portions))]
                for first, portion in self._last:
                    if first <= row < first + len(portion):
                        return portion.slice(row - first, _TOGETHER).to_pylist()
                self._whole = _TextsInTable(pa.chunked_array(list(self._read())))
                self._last.clear()
            return self._whole.some(row)

    def _read(self) -> Iterator[Any]:
        for path, content in self._contents.items():
            try:
                with pq.ParquetFile(pa.BufferReader(content)) as file:
                    size = sum(
                        file.metadata.row_group(group).total_byte_size
                        for group in range(file.num_row_groups)
                    )
                    fit = _BYTES * file.metadata.num_rows // max(size, 1)
                    read = file.iter_batches(
                        min(max(fit, _FEWEST), _MOST), columns=["value"], use_threads=False
                    )
                    for batch in read:
                        yield batch.column(0)
            except (pa.ArrowException, OSError, ValueError, KeyError) as error:
                raise unreadable(path, error) from error
