"""One landed result of one page, and the table that many of them make."""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pydantic_core

from ..errors import LibraryError

__all__ = [
    "ADDED",
    "MAX_VALUE_BYTES",
    "SCHEMA",
    "Pair",
    "Result",
    "Table",
    "digest_of",
    "earliest",
    "from_table",
    "only_pairs",
    "pairs_of",
    "to_table",
    "value_of",
]

if TYPE_CHECKING:
    # pyarrow has no type stubs: the checker is to take its tables as they come.
    Table: TypeAlias = Any
else:
    Table = pa.Table

Pair = tuple[str, str]
"""A page id and the key of one step's result on it."""

MAX_VALUE_BYTES = 32_000_000
"""The largest value of one page, as JSON in UTF-8."""

SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        # 64-bit offsets: 500 values of 32 MB are more than 2 GiB.
        pa.field("value", pa.large_string(), nullable=False),
        pa.field("model", pa.string()),
        pa.field("tokens_in", pa.int64()),
        pa.field("tokens_out", pa.int64()),
        pa.field("cost_usd", pa.decimal128(18, 9)),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("landed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("tokens_cached", pa.int64()),
        pa.field("price", pa.string()),
        pa.field("note", pa.string()),
    ]
)

ADDED = ("tokens_cached", "price", "note")
"""Columns that files of earlier layouts lack; they read as empty."""

_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_TEXTS = {str}
_CENT_FRACTION = Decimal("0.000000001")


class Result(NamedTuple):
    """What one step gave for one page.

    `value` is any JSON value. `cost_usd` is kept to nine places. `seconds` is the time the page
    took. `task` is the name of the task that brought it, `landed_at` an aware moment. `price` says
    where the cost comes from: `batch`, `plain`, `assumed`, `project` or `unknown`. `note` is what a
    person said who gave the value by hand.
    """

    page_id: str
    key: str
    value: Any
    seconds: float
    task: str
    landed_at: datetime
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: Decimal | None = None
    tokens_cached: int | None = None
    price: str | None = None
    note: str | None = None


def to_table(results: Sequence[Result]) -> Table:
    """The results as a table of `SCHEMA`, one row a pair, sorted by page id and key.

    Raises `LibraryError` naming the page when a value is not JSON, has text that is not Unicode,
    or is larger than `MAX_VALUE_BYTES`.
    """
    columns: dict[str, Sequence[Any]] = dict(
        zip(Result._fields, zip(*results, strict=True), strict=True)
    )
    columns["value"] = [_value_bytes(result) for result in results]
    moments = {result.landed_at: _moment(result) for result in results}
    columns["landed_at"] = [moments[each] for each in columns["landed_at"]]
    try:
        columns["cost_usd"] = _costs(results)
        arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
    except UnicodeEncodeError:
        for result in results:
            _check_texts(result)
        raise
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise LibraryError(
            f"The results of task {results[0].task!r} do not fit the library's columns: {error}."
        ) from error
    return earliest(pa.Table.from_arrays(arrays, schema=SCHEMA))


def from_table(table: Table) -> list[Result]:
    """The rows of a table of `SCHEMA` as results."""
    return [
        Result(
            **{
                **row,
                "value": json.loads(row["value"]),
                "landed_at": row["landed_at"].astimezone(UTC),
            }
        )
        for row in table.to_pylist()
    ]


def value_of(text: str) -> Any:
    """A value as it was written."""
    try:
        # The faster one; it refuses what is nested deep.
        return pydantic_core.from_json(text, cache_strings="keys")
    except ValueError:
        return json.loads(text)


def pairs_of(table: Table) -> Iterator[Pair]:
    """The (page id, key) of each row, in order."""
    pages = table.column("page_id").to_pylist()
    keys = table.column("key").to_pylist()
    return zip(pages, keys, strict=True)


def only_pairs(table: Table, pairs: Collection[Pair]) -> Table:
    """The rows whose pair is among `pairs`."""
    wanted = pairs if isinstance(pairs, (set, frozenset, dict)) else set(pairs)
    rows = [row for row, pair in enumerate(pairs_of(table)) if pair in wanted]
    return table if len(rows) == table.num_rows else table.take(pa.array(rows, pa.int64()))


def earliest(table: Table) -> Table:
    """One row for each (page id, key), sorted by them: the one that landed first.

    Of rows that landed in the same microsecond, the one whose task name sorts first; after that
    the one that comes first in `table`.
    """
    if _is_in_order(table):
        return table
    # Page ids rule the order, and sorting is stable.
    table = table.sort_by(
        [(name, "ascending") for name in ("page_id", "key", "landed_at", "task")]
    ).combine_chunks()
    if table.num_rows < 2:
        return table
    pages, keys = table.column("page_id"), table.column("key")
    fresh = pc.or_(  # pyright: ignore[reportAttributeAccessIssue]
        pc.not_equal(pages[1:], pages[:-1]),  # pyright: ignore[reportAttributeAccessIssue]
        pc.not_equal(keys[1:], keys[:-1]),  # pyright: ignore[reportAttributeAccessIssue]
    )
    mask = pa.chunked_array([pa.array([True]), *fresh.chunks])
    return table if pc.all(mask).as_py() else table.filter(mask)  # pyright: ignore[reportAttributeAccessIssue]


def _is_in_order(table: Table) -> bool:
    """Whether there is one row for each page and these are sorted, as one landed file is."""
    if table.num_rows < 2:
        return False
    pages = table.column("page_id").combine_chunks()
    rising = pc.greater(pages[1:], pages[:-1])  # pyright: ignore[reportAttributeAccessIssue]
    return pc.all(rising).as_py()  # pyright: ignore[reportAttributeAccessIssue]


def digest_of(table: Table) -> str:
    """16 hexadecimal digits of the pages, keys and values of a table, in their order.

    Not of the times: the same answers landed a second time are the same rows.
    """
    digest = hashlib.sha256()
    for name in ("page_id", "key", "value"):
        column = table.column(name)
        lengths = array("q", pc.binary_length(column).to_pylist())  # pyright: ignore[reportAttributeAccessIssue]
        if sys.byteorder == "little":
            lengths.byteswap()
        digest.update(lengths)
        for chunk in column.chunks:
            digest.update(_texts_of(chunk))
    return digest.hexdigest()[:16]


def _texts_of(chunk: Any) -> memoryview:
    """The texts of an Arrow array one after another, where they lie: none is copied."""
    _, ends, data = chunk.buffers()
    places = memoryview(ends).cast("q" if pa.types.is_large_string(chunk.type) else "i")
    return memoryview(data or b"")[places[chunk.offset] : places[chunk.offset + len(chunk)]]


def _value_bytes(result: Result) -> bytes:
    try:
        data = _json_of(result.value)
    except UnicodeEncodeError as error:
        raise LibraryError(
            f"The result of page {result.page_id!a} has half a character "
            f"(surrogate U+{ord(error.object[error.start]):04X}) in its text, which no file can "
            "hold; let the step replace it."
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise LibraryError(
            f"The result of page {result.page_id!a} is not a JSON value ({error}); "
            "let the step return plain dicts, lists, strings and finite numbers."
        ) from error
    if len(data) > MAX_VALUE_BYTES:
        raise LibraryError(
            f"The result of page {result.page_id!a} is {len(data) / 1e6:.1f} MB of JSON; "
            f"at most {MAX_VALUE_BYTES / 1e6:.0f} MB can be kept for one page."
        )
    return data


def _json_of(value: Any) -> bytes:
    """The value as JSON. An object of texts alone, as most are, in the faster way to the same."""
    if type(value) is dict and {*map(type, value), *map(type, value.values())} == _TEXTS:
        try:
            return orjson.dumps(value)
        except TypeError:  # half a character
            pass
    return _ENCODE(value).encode()


def _check_texts(result: Result) -> None:
    for what in ("page id", "key", "model", "task", "price", "note"):
        text: str | None = getattr(result, what.replace(" ", "_"))
        try:
            (text or "").encode()
        except UnicodeEncodeError as error:
            raise LibraryError(
                f"The {what} of page {result.page_id!a} is not Unicode text and cannot be kept."
            ) from error


def _costs(results: Sequence[Result]) -> Any:
    """What each cost, as an Arrow array to the places that are kept."""
    kind = SCHEMA.field("cost_usd").type
    try:
        return pa.array([result.cost_usd for result in results], kind)
    except pa.ArrowInvalid:  # some have more places
        return pa.array([_cost(result) for result in results], kind)


def _cost(result: Result) -> Decimal | None:
    if result.cost_usd is None:
        return None
    try:
        return result.cost_usd.quantize(_CENT_FRACTION)
    except InvalidOperation as error:
        raise LibraryError(
            f"The cost of page {result.page_id!a}, {result.cost_usd} dollars, is not an amount."
        ) from error


def _moment(result: Result) -> datetime:
    if result.landed_at.tzinfo is None:
        raise LibraryError(
            f"The landing time of page {result.page_id!a} has no time zone; give it in UTC."
        )
    return result.landed_at.astimezone(UTC)
