"""What became of each task, as JSON beside the results that it gave: it outlives the ledger."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any

from .paths import batch_folder, checked_name
from .store import Store

__all__ = ["TaskRecords"]

_SUFFIX = ".task.json"
_FORMAT = 1
# Reports are bounded where they are read; what is longer was not written here.
_MOST_BYTES = 64 * 1024 * 1024


class TaskRecords:
    """The records of a library's tasks: `<task>.task.json` in the folder of each of its steps.

    No result depends on one: a damaged record is passed over.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(
        self, recipe: str, steps: Collection[str], batch: str, task: str, record: Mapping[str, Any]
    ) -> None:
        """Keeps a task's record with each of its steps, in place of an earlier one.

        Raises `LibraryError` when it cannot be written.
        """
        content = json.dumps({"format": _FORMAT, **record}, allow_nan=False).encode()
        name = f"{checked_name(task, 'task')}{_SUFFIX}"

        def write(stream: IO[bytes]) -> None:
            stream.write(content)

        for step in steps:
            self._store.put(batch_folder(recipe, step, batch), name, write)

    def of(self, recipe: str, step: str, batch: str) -> list[dict[str, Any]]:
        """The records of the tasks that had the step of the batch, in the order of their names."""
        folder = batch_folder(recipe, step, batch)
        paths = self._store.find(folder, _SUFFIX)
        return [record for path in paths if (record := self._read(folder, path)) is not None]

    def below(self, recipe: str, known: Collection[str] = ()) -> Iterator[dict[str, Any]]:
        """The records of all tasks of a recipe but those named, each once."""
        folder = checked_name(recipe, "recipe")
        seen = set(known)
        for path in self._store.find(folder, _SUFFIX, deep=True):
            name = path.rpartition("/")[2].removesuffix(_SUFFIX)
            if name not in seen and (record := self._read(folder, path)) is not None:
                seen.add(name)
                yield record

    def _read(self, folder: str, path: str) -> dict[str, Any] | None:
        stream = self._store.open(folder, path)
        if stream is None:
            return None
        with stream:
            content = stream.read(_MOST_BYTES)
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.pop("format", None) != _FORMAT:
            return None
        return found
