"""Exports with one row a page and step: JSONL, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from .results import SCHEMA, Table

__all__ = ["EXPORT_SCHEMA", "TABLE_WRITERS", "TableWriter", "text_of"]

EXPORT_SCHEMA = pa.schema(
    [
        SCHEMA.field("page_id"),
        pa.field("folder", pa.string(), nullable=False),
        pa.field("step", pa.string(), nullable=False),
        *(field for field in SCHEMA if field.name != "page_id"),
    ]
)
"""The columns of every export of this kind; `value` is JSON."""

# These begin a formula in spreadsheets, the wide forms in some of them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Not needed by JSON, but many programs cut lines at them.
_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


class TableWriter(Protocol):
    """Writes tables of `EXPORT_SCHEMA` into one file."""

    def write(self, table: Table) -> None:
        """Adds rows."""
        ...

    def close(self) -> None:
        """Writes what a whole file needs at its end; the stream stays open."""
        ...


def text_of(value: Any) -> str | None:
    """The plain text of a value: its `text`, or itself when it is text; else None."""
    text = value.get("text") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


class _Jsonl:
    """One object a line, UTF-8, `\\n` after each; page ids exactly as they are."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, table: Table) -> None:
        for row in table.to_pylist():
            value = row.pop("value")
            row["landed_at"] = row["landed_at"].isoformat()
            row["cost_usd"] = _amount(row["cost_usd"])
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            # The value is JSON already, and so it stays as it was kept.
            line = f'{line[:-1]},"value":{value}}}'
            self._stream.write(line.translate(_LINE_ENDS).encode() + b"\n")

    def close(self) -> None:
        pass


class _Csv:
    """RFC 4180 with a heading, UTF-8; `text` is beside the JSON `value`.

    A cell that a spreadsheet would take for a formula has a `'` before it, also in page ids: use
    JSONL or Parquet where they must come back byte for byte.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        names = EXPORT_SCHEMA.names
        self._columns = [*names[: names.index("value")], "text", *names[names.index("value") :]]
        self._write([self._columns])

    def write(self, table: Table) -> None:
        rows: list[list[Any]] = []
        for row in table.to_pylist():
            row["text"] = text_of(json.loads(row["value"]))
            row["landed_at"] = row["landed_at"].isoformat()
            row["cost_usd"] = _amount(row["cost_usd"])
            rows.append([_cell(row[name]) for name in self._columns])
        self._write(rows)

    def close(self) -> None:
        pass

    def _write(self, rows: list[list[Any]]) -> None:
        buffer = io.StringIO(newline="")
        csv.writer(buffer, lineterminator="\r\n").writerows(rows)
        self._stream.write(buffer.getvalue().encode())


class _Parquet:
    """zstd, a row group for each batch and step; page ids exactly as they are."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._writer = pq.ParquetWriter(stream, EXPORT_SCHEMA, compression="zstd")

    def write(self, table: Table) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


TABLE_WRITERS: dict[str, Callable[[IO[bytes]], TableWriter]] = {
    "jsonl": _Jsonl,
    "csv": _Csv,
    "parquet": _Parquet,
}


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _amount(value: Decimal | None) -> str | None:
    return None if value is None else f"{value.normalize():f}"
