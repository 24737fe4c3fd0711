"""Result files in a folder of this machine or a mounted share."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from .paths import is_result_file
from .store import TEMPORARY, settled, unlistable, unreadable, unwritable

__all__ = ["LocalStore"]

_STALE_SECONDS = 3600.0


class LocalStore:
    """A `Store` that renames a synced temporary file into its place."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._root = root

    def names(self, folder: str) -> dict[str, int]:
        """See `Store`."""
        return settled(lambda: self._names(self._root / folder))

    def folders(self, folder: str) -> list[str]:
        """See `Store`."""
        try:
            with os.scandir(self._root / folder) as entries:
                return sorted(e.name for e in entries if e.is_dir() and e.name[0] != ".")
        except (FileNotFoundError, NotADirectoryError):
            return []

    def tree(self, folder: str) -> Iterator[tuple[str, dict[str, int]]]:
        """See `Store`."""
        base = self._root / folder
        for place, below, files in os.walk(base):
            below.sort()
            below[:] = [name for name in below if not name.startswith(".")]
            names = {name: 0 for name in sorted(files) if is_result_file(name)}
            if names:
                yield Path(place).relative_to(base).as_posix(), names

    def find(self, folder: str, suffix: str, *, deep: bool = False) -> list[str]:
        """See `Store`."""
        base = self._root / folder
        found: list[str] = []
        for place, below, files in os.walk(base):
            below[:] = [name for name in below if deep and not name.startswith(".")]
            names = [name for name in files if name.endswith(suffix) and name[0] != "."]
            found += [(Path(place) / name).relative_to(base).as_posix() for name in names]
        return sorted(found)

    def files(self, folder: str, names: Mapping[str, int]) -> Iterator[tuple[str, pq.ParquetFile]]:
        """See `Store`."""
        for name in names:
            path = os.path.join(self.root, folder, name)  # noqa: PTH118  (a hot loop)
            try:
                # Not mapped into memory: a file cut short by others would end this process.
                file = pq.ParquetFile(path)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise unreadable(path, error) from error
            with file:
                yield name, file

    def put(self, folder: str, name: str, write: Callable[[IO[bytes]], None]) -> None:
        """See `Store`."""
        target = self._root / folder / name
        temporary = target.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(temporary, "xb") as stream:
                    write(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
                temporary.replace(target)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            _sync_folder(target.parent)
        except OSError as error:
            raise unwritable(str(target), error) from error

    def open(self, folder: str, name: str) -> IO[bytes] | None:
        """See `Store`."""
        path = self._root / folder / name
        try:
            return path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unlistable(str(path), error) from error

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """See `Store`."""
        for name in names:
            path = self._root / folder / name
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(str(path), error) from error

    def sweep(self, folder: str) -> None:
        """See `Store`."""
        oldest = time.time() - _STALE_SECONDS
        with suppress(OSError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                if entry.name.startswith(TEMPORARY) and entry.stat().st_mtime < oldest:
                    with suppress(OSError):
                        os.unlink(entry.path)  # noqa: PTH108

    def _names(self, folder: Path) -> dict[str, int]:
        try:
            with os.scandir(folder) as entries:
                found = [e.name for e in entries if is_result_file(e.name) and e.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise unlistable(str(folder), error) from error
        return dict.fromkeys(sorted(found), 0)


def _sync_folder(folder: Path) -> None:
    # The name itself must outlive a power cut; some shares cannot sync a folder.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
