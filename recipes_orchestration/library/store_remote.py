"""Result files in an object store or on another machine, by fsspec."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import fsspec
import pyarrow.parquet as pq

from .paths import is_result_file
from .store import TEMPORARY, settled, unlistable, unreadable, unwritable

__all__ = ["RemoteStore"]

_SMALL_BYTES = 4_000_000
_GROUP_BYTES = 64_000_000
# Here one put makes the whole object appear; elsewhere a temporary name and a move are needed.
_WHOLE_PUTS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "memory"})


class RemoteStore:
    """A `Store` on any fsspec file system."""

    def __init__(self, fs: fsspec.AbstractFileSystem, root: str) -> None:
        self.root = fs.unstrip_protocol(root).rstrip("/")
        self._fs = fs
        self._root = root.rstrip("/")
        protocol: str | tuple[str, ...] = fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._one_put = bool(protocols & _WHOLE_PUTS)

    def names(self, folder: str) -> dict[str, int]:
        """See `Store`."""
        return settled(
            lambda: {
                name: int(entry["size"] or 0)
                for name, entry in sorted(self._entries(folder).items())
                if entry["type"] == "file" and is_result_file(name)
            }
        )

    def folders(self, folder: str) -> list[str]:
        """See `Store`."""
        entries = self._entries(folder).items()
        return sorted(n for n, entry in entries if entry["type"] == "directory" and n[0] != ".")

    def tree(self, folder: str) -> Iterator[tuple[str, dict[str, int]]]:
        """See `Store`."""
        base = self._path(folder) + "/"
        try:
            found: Any = self._fs.find(base, detail=True)
        except FileNotFoundError:
            return
        except Exception as error:
            raise unlistable(base, error) from error
        grouped: dict[str, dict[str, int]] = {}
        for path in sorted(found):
            place, _, name = path.rpartition("/")
            if is_result_file(name) and (place + "/").startswith(base):
                size = int(found[path]["size"] or 0)
                grouped.setdefault(place[len(base) :], {})[name] = size
        yield from grouped.items()

    def find(self, folder: str, suffix: str, *, deep: bool = False) -> list[str]:
        """See `Store`."""
        base = self._path(folder) + "/"
        try:
            found: Any = self._fs.find(base, maxdepth=None if deep else 1)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise unlistable(base, error) from error
        paths = [path[len(base) :] for path in found if path.startswith(base)]
        named = [path for path in paths if path.endswith(suffix)]
        return sorted(path for path in named if path.rpartition("/")[2][0] != ".")

    def files(self, folder: str, names: Mapping[str, int]) -> Iterator[tuple[str, pq.ParquetFile]]:
        """See `Store`."""
        for group in _groups(names):
            # Each backend has exceptions of its own: what it raises is told, whatever it is.
            paths = {name: f"{self._path(folder)}/{name}" for name in group}
            small = [paths[name] for name in group if names[name] <= _SMALL_BYTES]
            # All at the same time, and by range: a fetch of whole files asks for each twice.
            sizes = [size for size in map(names.__getitem__, group) if size <= _SMALL_BYTES]
            fetched: Any = self._fs.cat_ranges(small, [0] * len(small), sizes, on_error="return")
            data: dict[str, Any] = dict(zip(small, fetched, strict=True))
            for name, path in paths.items():
                try:
                    content = data.pop(path, None)
                    if isinstance(content, Exception):
                        raise content
                    stream = self._fs.open(path) if content is None else io.BytesIO(content)
                    file = pq.ParquetFile(stream)
                except Exception as error:
                    raise unreadable(path, error) from error
                with stream, file:
                    yield name, file

    def open(self, folder: str, name: str) -> IO[bytes] | None:
        """See `Store`."""
        path = f"{self._path(folder)}/{name}"
        try:
            if not self._fs.exists(path):
                return None
            stream: Any = self._fs.open(path, "rb")
            return stream
        except FileNotFoundError:
            return None
        except Exception as error:
            raise unlistable(path, error) from error

    def put(self, folder: str, name: str, write: Callable[[IO[bytes]], None]) -> None:
        """See `Store`."""
        buffer = io.BytesIO()
        write(buffer)
        target = f"{self._path(folder)}/{name}"
        try:
            if self._one_put:
                self._fs.pipe_file(target, buffer.getvalue())
                return
            self._fs.makedirs(self._path(folder), exist_ok=True)
            temporary = f"{self._path(folder)}/{TEMPORARY}{secrets.token_hex(9)}"
            self._fs.pipe_file(temporary, buffer.getvalue())
            self._fs.mv(temporary, target)
        except Exception as error:
            raise unwritable(target, error) from error

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """See `Store`."""
        paths = [f"{self._path(folder)}/{name}" for name in names]
        if not paths:
            return
        try:
            self._fs.rm(paths)
        except FileNotFoundError:
            for path in paths:
                with suppress(FileNotFoundError):
                    self._fs.rm_file(path)
        except Exception as error:
            raise unwritable(paths[0], error) from error

    def sweep(self, folder: str) -> None:
        """Nothing: an object store keeps no half-written objects."""

    def _path(self, folder: str) -> str:
        return f"{self._root}/{folder}" if folder else self._root

    def _entries(self, folder: str) -> dict[str, dict[str, Any]]:
        path = self._path(folder)
        try:
            found: list[dict[str, Any]] = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise unlistable(path, error) from error
        return {entry["name"].rstrip("/").rpartition("/")[2]: entry for entry in found}


def _groups(names: Mapping[str, int]) -> Iterator[list[str]]:
    group: list[str] = []
    total = 0
    for name, size in names.items():
        if group and total + size > _GROUP_BYTES:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield group
