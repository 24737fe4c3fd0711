"""A source of pages: a root with folders of page files, on a disk or in an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fsspec.core import url_to_fs

from ..errors import SourceError
from .listing import FileEntry, FileGone, FolderListing, Store
from .local_disk import LocalDisk
from .naming import ROOT, folder_order
from .object_store import ObjectStore

__all__ = ["MAX_FILE_BYTES", "FileEntry", "FileGone", "FolderListing", "Source", "SourceReader"]

MAX_FILE_BYTES = 2 << 30
"""A page file may have this many bytes unless another bound is given."""


@dataclass(frozen=True)
class SourceReader:
    """Reads files of a source by their names; small, and pickled for worker processes.

    `root` is a path or an fsspec URL. A `memory://` source lives in one process only.
    """

    root: str
    storage_options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    max_bytes: int = MAX_FILE_BYTES

    @cached_property
    def store(self) -> Store:
        """Where the files are. Opened at first use, once a process."""
        if "://" not in self.root:
            return LocalDisk(self.root)
        if self.root.startswith(("file://", "local://")):
            return LocalDisk(str(url_to_fs(self.root)[1]))
        return ObjectStore(self.root, self.storage_options)

    @property
    def in_process(self) -> bool:
        """Whether the files are in this process only, where no other one can read them."""
        return self.root.startswith("memory://")

    def read(self, file: str, max_bytes: int | None = None) -> bytes:
        """The bytes of a file, opened by its own bytes' name.

        Raises `SourceError` when it cannot be fetched now, `PageUnreadable` when it is larger
        than `max_bytes` or is no regular file.
        """
        return self.store.read(file, self.max_bytes if max_bytes is None else max_bytes)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("store", None)
        return state


@dataclass(frozen=True)
class Source:
    """Where pages come from.

    `root` is a path or an fsspec URL such as `s3://bucket/scans`, `storage_options` are given to
    fsspec. With `hidden`, files and folders whose names start with a dot are taken too.
    """

    name: str
    root: str
    storage_options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    hidden: bool = False
    max_bytes: int = MAX_FILE_BYTES

    @cached_property
    def reader(self) -> SourceReader:
        """What reads this source's files, here or in another process."""
        return SourceReader(os.fspath(self.root), self.storage_options, self.max_bytes)

    def read(self, file: str, max_bytes: int | None = None) -> bytes:
        """The bytes of a file; see `SourceReader.read`."""
        return self.reader.read(file, max_bytes)

    def list_root(self) -> FolderListing:
        """The listing of the source's own folder; raises `SourceError` when it cannot be had."""
        return self.reader.store.list_folder(ROOT, hidden=self.hidden)

    def walk(self, after: str | None = None) -> Iterator[FolderListing]:
        """The folders, each before its subfolders and siblings in natural order, one at a time.

        With `after`, the walk goes on behind that folder, whether it still exists or not. A
        folder that cannot be listed comes with its problem. Raises `SourceError` when the root
        itself cannot be.
        """
        store = self.reader.store
        behind = None if after is None else folder_order(after)
        waiting = [ROOT]
        while waiting:
            folder = waiting.pop()
            order = folder_order(folder) if behind is not None else ()
            reached = behind is None or order > behind
            if not reached and behind is not None and behind[: len(order)] != order:
                continue
            try:
                listing = store.list_folder(folder, hidden=self.hidden)
            except SourceError as error:
                if folder == ROOT:
                    raise
                listing = FolderListing(folder, (), (), problem=str(error))
            prefix = "" if folder == ROOT else f"{folder}/"
            waiting += [prefix + name for name in reversed(listing.subfolders)]
            # What could not be listed is said even before the place to go on from: its subfolders
            # will not come, which does not mean that they are gone.
            if reached or listing.problem:
                yield listing

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("reader", None)
        return state
