"""Result tables as Parquet: how they are written, and read back column by column."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from .results import ADDED, SCHEMA, Table
from .store import unreadable

__all__ = ["FORMAT", "metadata_of", "open_writer", "read_columns", "write_table"]

# Arrow's usual pool takes twice what it gives out and keeps it: a process that lives for days would
# hold its largest batch as long.
if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
    pa.set_memory_pool(pa.system_memory_pool())

FORMAT = "1"
"""The version of the files' layout, in their metadata as `recipes.format`."""

_GROUP_BYTES = 64_000_000
_READ_ROWS = 1000


def metadata_of(recipe: str, step: str, batch: str, task: str) -> dict[str, str]:
    """The key-value metadata of a result file."""
    return {
        "recipes.recipe": recipe,
        "recipes.step": step,
        "recipes.batch": batch,
        "recipes.task": task,
        "recipes.format": FORMAT,
    }


def open_writer(stream: IO[bytes], metadata: dict[str, str]) -> pq.ParquetWriter:
    """A writer of tables of `SCHEMA` into `stream`."""
    return pq.ParquetWriter(
        stream,
        SCHEMA.with_metadata(metadata),
        compression="zstd",
        use_dictionary=["model", "task"],  # pyright: ignore[reportArgumentType]
        # Statistics would hold whole values; nothing here is searched by them.
        write_statistics=False,
    )


def write_table(table: Table, stream: IO[bytes]) -> None:
    """Writes a table of `SCHEMA` in row groups of about 64 MB."""
    rows = max(1, table.num_rows * _GROUP_BYTES // max(table.nbytes, 1))
    with open_writer(stream, table.schema.metadata or {}) as writer:
        writer.write_table(table.replace_schema_metadata(writer.schema.metadata), rows)


def read_columns(file: pq.ParquetFile, columns: Sequence[str], path: str) -> Table:
    """Those columns of an opened file; `LibraryError` naming `path` when it is damaged."""
    try:
        here = [name for name in columns if name not in ADDED or name in file.schema_arrow.names]
        # In portions, as a column that is read at once doubles its memory as it grows.
        read = file.iter_batches(_READ_ROWS, columns=here, use_threads=False)
        schema = pa.schema([file.schema_arrow.field(name) for name in here])
        table = pa.Table.from_batches(list(read), schema)
        return as_schema(table, columns)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise unreadable(path, error) from error


def as_schema(table: Table, columns: Sequence[str]) -> Table:
    """The table with exactly these columns of `SCHEMA`; `KeyError` when one is missing."""
    for name in columns:
        if name in ADDED and name not in table.column_names:
            empty = pa.nulls(table.num_rows, SCHEMA.field(name).type)
            table = table.append_column(SCHEMA.field(name), empty)
    wanted = pa.schema([SCHEMA.field(name) for name in columns])
    table = table.select(list(columns)).replace_schema_metadata(None)
    return table if table.schema.equals(wanted) else table.cast(wanted)
