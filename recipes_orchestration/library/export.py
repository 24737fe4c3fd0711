"""Landed results for other programs: text files, JSONL, CSV, Parquet and PAGE XML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..errors import NotFound, RecipesError
from ..recipe import Recipe, page_key
from .export_names import PageNames
from .export_sinks import FolderSink, whole_file
from .export_tables import EXPORT_SCHEMA, TABLE_WRITERS, text_of
from .library import Library
from .page_xml import has_lines, page_xml
from .results import Table, pairs_of

__all__ = ["FORMATS", "BatchPages", "Exported", "export"]

FORMATS = ("text", "jsonl", "csv", "parquet", "page-xml")
"""`text` and `page-xml` write a folder with a file for each page, the others one file."""

BatchPages = tuple[str, Mapping[str, str | None]]
"""A batch key, and the sha256 of each of its pages by page id, in their order."""


@dataclass(frozen=True)
class Exported:
    """What an export wrote: pages seen, rows or files written, and what there was nothing of.

    `missing` counts pages of steps that have no landed result for the recipe and the page as they
    are now, `unfit` pages whose value has no shape for the format. `out` is where it went.
    """

    out: str
    pages: int = 0
    written: int = 0
    missing: int = 0
    unfit: int = 0


def export(
    library: Library,
    recipe: Recipe,
    batches: Iterable[BatchPages],
    steps: Sequence[str],
    format: str,
    out: str,
    storage_options: Mapping[str, Any] | None = None,
) -> Exported:
    """Writes the results of some steps, one batch in memory at a time.

    Of each page the result of the recipe as it is now, never an older one. `out` is a file for
    `jsonl`, `csv` and `parquet` and a folder for `text` (one `.txt` a page; with several steps
    `<page>.<step>.txt`) and `page-xml` (one `.xml` a page, from the last of the steps that has
    read lines, else found lines). Rows come by batch, step and page. Files are written under a
    temporary name and then renamed, or in one put.

    Raises `NotFound` for an unknown step or format and `LibraryError` when the library cannot be
    read or `out` not be written.
    """
    if format not in FORMATS:
        raise NotFound(f"There is no export format {format!r}; there are {', '.join(FORMATS)}.")
    known = [step.name for step in recipe.steps]
    if unknown := [step for step in steps if step not in known]:
        raise NotFound(
            f"Recipe {recipe.name!r} has no step {unknown[0]!r}; it has {', '.join(known)}."
        )
    if not steps:
        raise RecipesError("Name at least one step to export.")
    steps = list(dict.fromkeys(steps))
    if format in TABLE_WRITERS:
        return _export_table(library, recipe, batches, steps, format, out, storage_options)
    return _export_files(library, recipe, batches, steps, format, out, storage_options)


def _export_table(
    library: Library,
    recipe: Recipe,
    batches: Iterable[BatchPages],
    steps: Sequence[str],
    format: str,
    out: str,
    storage_options: Mapping[str, Any] | None,
) -> Exported:
    done = Exported(out)
    with (
        whole_file(out, storage_options) as stream,
        closing(TABLE_WRITERS[format](stream)) as writer,
    ):
        for batch, pages in batches:
            done = replace(done, pages=done.pages + len(pages))
            for step in steps:
                table = _current(library, recipe, step, batch, pages)
                if table.num_rows:
                    writer.write(_with_places(table, step))
                done = replace(
                    done,
                    written=done.written + table.num_rows,
                    missing=done.missing + len(pages) - table.num_rows,
                )
    return done


def _export_files(
    library: Library,
    recipe: Recipe,
    batches: Iterable[BatchPages],
    steps: Sequence[str],
    format: str,
    out: str,
    storage_options: Mapping[str, Any] | None,
) -> Exported:
    sink = FolderSink(out, storage_options)
    names = PageNames(".xml" if format == "page-xml" else ".txt")
    done = Exported(out)
    for batch, pages in batches:
        values: dict[str, dict[str, tuple[Any, datetime]]] = {page: {} for page in pages}
        for step in steps:
            table = _current(library, recipe, step, batch, pages)
            for page, value, moment in _rows(table):
                values[page][step] = (value, moment)
        files: dict[str, bytes] = {}
        for page, by_step in values.items():
            path = names.path(page)
            if format == "page-xml":
                made = _page_xml_file(page, by_step, path, steps)
                unfit = bool(by_step) and not made
                missing = 0 if by_step else 1
            else:
                made = _text_files(by_step, path, several=len(steps) > 1)
                unfit, missing = False, len(steps) - len(by_step)
            files |= made
            done = replace(done, missing=done.missing + missing, unfit=done.unfit + unfit)
        sink.put(files)
        done = replace(done, pages=done.pages + len(pages), written=done.written + len(files))
    return done


def _current(
    library: Library, recipe: Recipe, step: str, batch: str, pages: Mapping[str, str | None]
) -> Table:
    """The rows of the pages' present keys, in the order of `pages`."""
    fingerprint = recipe.fingerprint(step)
    table = library.table(recipe.name, step, batch)
    at = {pair: row for row, pair in enumerate(pairs_of(table))}
    wanted = [(page, page_key(fingerprint, sha)) for page, sha in pages.items() if sha]
    rows = [at[pair] for pair in wanted if pair in at]
    return table.take(pa.array(rows, pa.int64()))


def _with_places(table: Table, step: str) -> Table:
    pages: list[str] = table.column("page_id").to_pylist()
    folders = [page.rpartition("/")[0] or "." for page in pages]
    columns = {
        **{name: table.column(name) for name in table.column_names},
        "folder": pa.array(folders, pa.string()),
        "step": pa.array([step] * len(pages), pa.string()),
    }
    return pa.table([columns[name] for name in EXPORT_SCHEMA.names], schema=EXPORT_SCHEMA)


def _rows(table: Table) -> Iterator[tuple[str, Any, datetime]]:
    columns = (table.column(name).to_pylist() for name in ("page_id", "value", "landed_at"))
    for page, value, moment in zip(*columns, strict=True):
        yield page, json.loads(value), moment


def _text_files(
    by_step: Mapping[str, tuple[Any, datetime]], path: str, *, several: bool
) -> dict[str, bytes]:
    stem = path.removesuffix(".txt")
    files: dict[str, bytes] = {}
    for step, (value, _) in by_step.items():
        text = text_of(value)
        if text is None:
            text = json.dumps(value, ensure_ascii=False, indent=2)
        if text and not text.endswith("\n"):
            text += "\n"
        files[f"{stem}.{step}.txt" if several else path] = text.encode()
    return files


def _page_xml_file(
    page: str, by_step: Mapping[str, tuple[Any, datetime]], path: str, steps: Sequence[str]
) -> dict[str, bytes]:
    fitting = [by_step[step] for step in steps if step in by_step and has_lines(by_step[step][0])]
    if not fitting:
        return {}
    read = [one for one in fitting if any("text" in line for line in one[0]["lines"])]
    value, moment = (read or fitting)[-1]
    return {path: page_xml(page.rpartition("/")[2], value, moment)}
