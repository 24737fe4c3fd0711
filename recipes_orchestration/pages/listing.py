"""What a walk over a source gives, and what a store must be able to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..errors import SourceError
from .naming import natural_key

__all__ = ["FileEntry", "FileGone", "FolderListing", "Store", "listing_of"]


class FileGone(SourceError):
    """The file is not there any more."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One page file as its folder lists it; it has not been opened.

    `file` is the path relative to the source. `size` is in bytes. `stamp` changes when the file
    does. `problem` says why the file cannot be opened at all (a link to nothing, for instance).
    """

    file: str
    folder: str
    size: int
    stamp: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class FolderListing:
    """One folder: its page files and its subfolders' names, both in natural order.

    `ignored` counts what was passed over: litter, hidden files, files that are no pages, links to
    folders, pipes, sockets and devices. With `problem` the folder could not be listed to its end
    and nothing may be concluded from a file that is not among `files`.
    """

    folder: str
    files: tuple[FileEntry, ...]
    subfolders: tuple[str, ...]
    ignored: int = 0
    problem: str | None = None

    @property
    def empty(self) -> bool:
        """Nothing at all lies in the folder, not even what is passed over."""
        return not (self.files or self.subfolders or self.ignored or self.problem)


class Store(Protocol):
    """A place that holds files under a root: the local disk or an object store."""

    def list_folder(self, folder: str, *, hidden: bool) -> FolderListing:
        """The folder's listing; raises `SourceError` when it cannot be listed."""
        ...

    def read(self, file: str, max_bytes: int) -> bytes:
        """The file's bytes; raises `FileGone`, `SourceError` or `PageUnreadable`."""
        ...


def listing_of(
    folder: str,
    files: Mapping[str, FileEntry],
    subfolders: Iterable[str],
    ignored: int,
    problem: str | None = None,
) -> FolderListing:
    """A listing with `files` (by name in their folder) and subfolders put into natural order."""
    return FolderListing(
        folder,
        tuple(files[name] for name in sorted(files, key=natural_key)),
        tuple(sorted(subfolders, key=natural_key)),
        ignored,
        problem,
    )
