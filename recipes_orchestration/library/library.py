"""The library: landed results, and the one place that says what is done."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from ..errors import LibraryError
from . import compaction
from .answers import answers_name, read_lines, write_lines
from .landed_pairs import LandedPairs
from .parquet import metadata_of, read_columns, write_table
from .paths import batch_folder, batch_of_folder, file_name, step_folder
from .records import TaskRecords
from .results import (
    SCHEMA,
    Pair,
    Result,
    Table,
    digest_of,
    earliest,
    from_table,
    only_pairs,
    pairs_of,
    to_table,
    value_of,
)
from .store import Store, VanishedError
from .store_local import LocalStore
from .store_remote import RemoteStore
from .values import LandedValues, values_in_files, values_in_table

__all__ = ["Library"]

_T = TypeVar("_T")
_PAIR = ("page_id", "key")
_ORDER = (*_PAIR, "landed_at", "task")
_THREADS = 8
_ROWS = 500


class Library:
    """Results of recipes as Parquet files below a path or fsspec URL.

    `<recipe>/<step>/<batch path>/<task>[.<part>].<digest>.parquet`. Files are written whole, never
    changed, and only ever replaced by one file with all of their rows, so any number of processes
    may read, land and compact at the same time. `tasks` are the records of the tasks beside them.
    Made anew from `url` and `storage_options` when it is pickled. Every method raises
    `LibraryError` when a file or folder cannot be read or written.
    """

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self.url = url
        self._options = dict(storage_options or {})
        self._store = _open(url, self._options)
        self.tasks = TaskRecords(self._store)

    def __reduce__(self) -> tuple[type[Library], tuple[str, dict[str, Any]]]:
        return Library, (self.url, self._options)

    def __repr__(self) -> str:
        return f"Library({self._store.root!r})"

    def land(
        self,
        recipe: str,
        step: str,
        batch: str,
        task: str,
        part: int | None,
        results: Sequence[Result],
    ) -> None:
        """Writes results as one file, whole and synced to disk before it can be seen.

        Landing the same results again under the same task and part changes nothing. Other results
        under a name used before are kept beside the first; of one pair that landed twice, the
        earlier counts. No results write no file.
        """
        folder = batch_folder(recipe, step, batch)
        self._store.sweep(folder)
        if not results:
            return
        table = to_table(results)
        name = file_name(task, part, digest_of(table))
        if name in self._store.names(folder):
            return
        table = table.replace_schema_metadata(metadata_of(recipe, step, batch, task))
        self._store.put(folder, name, lambda stream: write_table(table, stream))

    def landed(self, recipe: str, step: str, batch: str) -> LandedPairs:
        """The (page id, key) of everything landed. Reads only these two columns."""
        tables = self._tables(batch_folder(recipe, step, batch), _PAIR)
        return LandedPairs(tables)

    def landed_many(
        self, recipe: str, steps: Sequence[str], batches: Collection[str]
    ) -> Iterator[tuple[str, dict[str, LandedPairs]]]:
        """`landed` of each step for many batches, in their order, one batch in memory at a time.

        On another machine several batches are fetched at the same time.
        """

        def one(batch: str) -> tuple[str, dict[str, LandedPairs]]:
            return batch, {step: self.landed(recipe, step, batch) for step in steps}

        if isinstance(self._store, LocalStore):
            # Making the sets holds the interpreter's lock: threads would only be in the way.
            yield from map(one, batches)
            return
        with ThreadPoolExecutor(_THREADS) as pool:
            todo = iter(batches)
            ahead: list[Future[tuple[str, dict[str, LandedPairs]]]] = [
                pool.submit(one, batch) for batch in islice(todo, 2 * _THREADS)
            ]
            while ahead:
                done = ahead.pop(0).result()
                ahead.extend(pool.submit(one, batch) for batch in islice(todo, 1))
                yield done

    def table(
        self, recipe: str, step: str, batch: str, columns: Sequence[str] | None = None
    ) -> Table:
        """One row a (page id, key), sorted by them, with the columns of `SCHEMA` asked for.

        Of a pair that landed more than once, the row that landed first.
        """
        wanted = SCHEMA.names if columns is None else list(columns)
        if unknown := [name for name in wanted if name not in SCHEMA.names]:
            raise LibraryError(
                f"The library has no column {unknown[0]!r}; there are {', '.join(SCHEMA.names)}."
            )
        read = [name for name in SCHEMA.names if name in wanted or name in _ORDER]
        tables = self._tables(batch_folder(recipe, step, batch), read)
        if not tables:
            return pa.schema([SCHEMA.field(name) for name in wanted]).empty_table()
        return earliest(pa.concat_tables(tables)).select(wanted)

    def values(
        self, recipe: str, step: str, batch: str, pairs: Collection[Pair]
    ) -> dict[Pair, Any]:
        """The values of those of the pairs that have landed."""
        table = only_pairs(self.table(recipe, step, batch, (*_PAIR, "value")), pairs)
        found: dict[Pair, Any] = {}
        # A few at a time: the texts of thousands of pages would be held beside their values.
        for start in range(0, table.num_rows, _ROWS):
            part = table.slice(start, _ROWS)
            texts = part.column("value").to_pylist()
            found.update(zip(pairs_of(part), map(value_of, texts), strict=True))
        return found

    def lookup(self, recipe: str, step: str, batch: str, keys: Mapping[str, str]) -> LandedValues:
        """The values by page id of those that have landed, each made when it is asked for.

        `keys` are what is wanted of each page.
        """
        folder = batch_folder(recipe, step, batch)
        found = self._again(folder, lambda: values_in_files(self._store, folder, keys))
        if found is not None:
            return found
        # Of a pair that landed more than once, the value that landed first.
        return values_in_table(self.table(recipe, step, batch, (*_PAIR, "value")), keys)

    def rows(self, recipe: str, step: str, batch: str, pairs: Collection[Pair]) -> list[Result]:
        """The results of those of the pairs that have landed, sorted by page id and key."""
        return from_table(only_pairs(self.table(recipe, step, batch), pairs))

    def keep_answers(
        self, recipe: str, step: str, batch: str, task: str, lines: Iterable[bytes]
    ) -> None:
        """Keeps a provider's answer lines as they came, whole or not at all."""
        folder = batch_folder(recipe, step, batch)
        self._store.sweep(folder)
        self._store.put(folder, answers_name(task), lambda stream: write_lines(lines, stream))

    def has_answers(self, recipe: str, step: str, batch: str, task: str) -> bool:
        """Whether answer lines of the task are kept."""
        stream = self._store.open(batch_folder(recipe, step, batch), answers_name(task))
        if stream is not None:
            stream.close()
        return stream is not None

    def answers(self, recipe: str, step: str, batch: str, task: str) -> Generator[bytes]:
        """The answer lines that were kept of the task; none when none were."""
        folder, name = batch_folder(recipe, step, batch), answers_name(task)
        stream = self._store.open(folder, name)
        if stream is not None:
            with stream:
                yield from read_lines(stream, f"{self._store.root}/{folder}/{name}")

    def compact(self, recipe: str, step: str, batch: str) -> None:
        """Makes one file of many, with one row a (page id, key).

        The one is written and read back before the many are removed: a crash in between leaves
        both, which reads the same. Files that land meanwhile stay beside it.
        """
        folder = batch_folder(recipe, step, batch)
        self._store.sweep(folder)
        self._again(folder, lambda: compaction.compact(self._store, folder, recipe, step, batch))

    def batches(self, recipe: str, step: str) -> Iterator[str]:
        """The keys of the batches that have results of the step, in no order of meaning."""
        below = step_folder(recipe, step)
        for folder, names in self._store.tree(below):
            key = batch_of_folder(folder) or self._key_inside(f"{below}/{folder}", names)
            if key is not None and batch_folder(recipe, step, key) == f"{below}/{folder}":
                yield key

    def steps(self, recipe: str) -> list[str]:
        """The names of the recipe's steps that have a folder here."""
        return self._store.folders(recipe)

    def recipes(self) -> list[str]:
        """The names of the recipes that have a folder here."""
        return self._store.folders("")

    def uri(self, recipe: str, step: str, batch: str) -> str:
        """The path or URL of the folder with the batch's files."""
        return f"{self._store.root}/{batch_folder(recipe, step, batch)}"

    def probe(self) -> None:
        """Writes, lists and removes a small file; `LibraryError` says what did not work."""
        name = f"probe-{secrets.token_hex(6)}.parquet"
        empty = SCHEMA.empty_table()

        def write(stream: IO[bytes]) -> None:
            write_table(empty, stream)

        self._store.put(".probe", name, write)
        seen = name in self._store.names(".probe")
        self._store.remove(".probe", [name])
        if not seen:
            raise LibraryError(
                f"A file written to the library {self._store.root} was not in its listing; "
                "the library needs a store that lists what was written."
            )

    def _tables(self, folder: str, columns: Sequence[str]) -> list[Table]:
        return self._again(
            folder,
            lambda: [
                read_columns(file, columns, f"{self._store.root}/{folder}/{name}")
                for name, file in self._store.files(folder, self._store.names(folder))
            ],
        )

    def _again(self, folder: str, work: Callable[[], _T]) -> _T:
        # A merge removes listed files only after the whole one can be listed.
        for _ in range(50):
            try:
                return work()
            except VanishedError:
                continue
        raise LibraryError(
            f"The files in {self._store.root}/{folder} keep disappearing while they are read; "
            "see what else removes files there."
        )

    def _key_inside(self, folder: str, names: Mapping[str, int]) -> str | None:
        first = dict(islice(names.items(), 1))
        try:
            for _, file in self._store.files(folder, first):
                kept: Mapping[bytes, bytes] = file.schema_arrow.metadata or {}
                key = kept.get(b"recipes.batch")
                return None if key is None else key.decode("utf-8", "replace")
        except VanishedError:
            return self._key_inside(folder, self._store.names(folder))
        return None


def _open(url: str, options: Mapping[str, Any]) -> Store:
    if "://" in url and not url.startswith(("file://", "local://")):
        # Other processes write too: what was listed a moment ago may be old.
        options = {"use_listings_cache": False, "skip_instance_cache": True, **options}
    try:
        fs, root = url_to_fs(url, **options)
    except (ImportError, ValueError, TypeError, OSError) as error:
        raise LibraryError(
            f"The library {url.partition('://')[0]}://… cannot be opened ({error}); "
            "see `library` in project.yaml."
        ) from error
    if not isinstance(fs, LocalFileSystem):
        return RemoteStore(fs, root)
    if Path(root).exists() and not Path(root).is_dir():
        raise LibraryError(
            f"The library {root} is a file, not a folder; move it away, or name another folder "
            "with `library` in project.yaml."
        )
    return LocalStore(Path(root))
