"""Many result files of a batch made into one."""

from __future__ import annotations

import hashlib
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import LibraryError
from .parquet import as_schema, metadata_of, open_writer, read_columns
from .paths import file_name
from .results import SCHEMA, Table, earliest, pairs_of
from .store import Store, VanishedError, unreadable

__all__ = ["compact"]

_TASK = "compact"
_ORDER = ("page_id", "key", "landed_at", "task")
# A file of so many rows is read as quickly by itself as in a larger one.
_LARGE_ROWS = 1000


def compact(store: Store, folder: str, recipe: str, step: str, batch: str) -> None:
    """Writes one file with the rows that count of the small files in a folder, then removes those.

    Memory is that of one row group and the pairs. Two at once are harmless: each removes only
    files whose rows are in the one it wrote, and a name always stands for the same rows.
    Raises `VanishedError` when another one was faster.
    """
    names = store.names(folder)
    if len(names) > 1:
        names = _small(store, folder, names)
    if len(names) < 2:
        return
    chosen = _chosen_rows(store, folder, names)
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    whole = file_name(_TASK, None, digest)
    metadata = metadata_of(recipe, step, batch, _TASK)

    def write(stream: IO[bytes]) -> None:
        with open_writer(stream, metadata) as writer:
            for name, file in store.files(folder, names):
                _copy_rows(file, chosen[name], writer, f"{store.root}/{folder}/{name}")

    store.put(folder, whole, write)
    _verify(store, folder, whole, sum(len(rows) for rows in chosen.values()))
    store.remove(folder, list(names))


def _small(store: Store, folder: str, names: dict[str, int]) -> dict[str, int]:
    rows = {name: file.metadata.num_rows for name, file in store.files(folder, names)}
    return {name: size for name, size in names.items() if rows[name] < _LARGE_ROWS}


def _chosen_rows(store: Store, folder: str, names: dict[str, int]) -> dict[str, list[int]]:
    tables: list[Table] = []
    for index, (name, file) in enumerate(store.files(folder, names)):
        table = read_columns(file, _ORDER, f"{store.root}/{folder}/{name}")
        count = table.num_rows
        table = table.append_column("file", pa.array([index] * count, pa.int64()))
        tables.append(table.append_column("row", pa.array(range(count), pa.int64())))
    best = earliest(pa.concat_tables(tables))
    chosen: dict[str, list[int]] = {name: [] for name in names}
    in_order = list(names)
    for index, row in zip(
        best.column("file").to_pylist(), best.column("row").to_pylist(), strict=True
    ):
        chosen[in_order[index]].append(row)
    return chosen


def _copy_rows(file: pq.ParquetFile, rows: list[int], writer: pq.ParquetWriter, path: str) -> None:
    left = sorted(rows)
    start = 0
    for group in range(file.num_row_groups):
        try:
            table = as_schema(file.read_row_group(group, use_threads=False), SCHEMA.names)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise unreadable(path, error) from error
        here = [row - start for row in left if start <= row < start + table.num_rows]
        start += table.num_rows
        if here:
            picked = table.take(pa.array(here, pa.int64()))
            writer.write_table(picked.replace_schema_metadata(writer.schema.metadata))


def _verify(store: Store, folder: str, name: str, rows: int) -> None:
    # As others see it: a merge that came after has taken it up, and then all is to be read anew.
    listed = {each: size for each, size in store.names(folder).items() if each == name}
    if not listed:
        raise VanishedError(name)
    for _, file in store.files(folder, listed):
        table = read_columns(file, ("page_id", "key"), f"{store.root}/{folder}/{name}")
        pairs = set(pairs_of(table))
        if table.num_rows != rows or len(pairs) != rows:
            raise LibraryError(
                f"The merged file {store.root}/{folder}/{name} has {len(pairs)} pairs instead "
                f"of {rows}; the files it was made of were kept. Look at the disk, then delete it."
            )
