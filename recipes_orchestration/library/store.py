"""What the library needs of a place that keeps files: listed, read and written whole."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Protocol

import pyarrow.parquet as pq

from ..errors import LibraryError

__all__ = [
    "TEMPORARY",
    "Store",
    "VanishedError",
    "settled",
    "unlistable",
    "unreadable",
    "unwritable",
]

TEMPORARY = ".writing-"
"""How the name of a file begins that is still being written."""


class VanishedError(Exception):
    """A listed file was gone when it was opened: another process merged it; list again."""


class Store(Protocol):
    """A folder of result files. Folders are relative to it, with `/` and no leading one."""

    root: str

    def names(self, folder: str) -> dict[str, int]:
        """The result files directly in a folder, sorted, with their sizes in bytes."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in a folder, sorted."""
        ...

    def tree(self, folder: str) -> Iterator[tuple[str, dict[str, int]]]:
        """Each folder below that has result files, relative to `folder`, with its `names`."""
        ...

    def find(self, folder: str, suffix: str, *, deep: bool = False) -> list[str]:
        """The paths of the files in a folder whose names end so, sorted; `deep`: and below it."""
        ...

    def files(self, folder: str, names: Mapping[str, int]) -> Iterator[tuple[str, pq.ParquetFile]]:
        """Each named file, opened. Raises `VanishedError` or, when damaged, `LibraryError`."""
        ...

    def put(self, folder: str, name: str, write: Callable[[IO[bytes]], None]) -> None:
        """Writes a file that is seen whole or not at all."""
        ...

    def open(self, folder: str, name: str) -> IO[bytes] | None:
        """A file to read from its beginning, or None when there is none of that name."""
        ...

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Removes files; one that is gone already is no error."""
        ...

    def sweep(self, folder: str) -> None:
        """Removes what writers that died left in a folder, once it is an hour old."""
        ...


def unreadable(path: str, error: Exception) -> Exception:
    """What to raise when a listed file could not be read: `VanishedError`, or a `LibraryError`."""
    if isinstance(error, FileNotFoundError) or (
        isinstance(error, OSError) and error.errno == errno.ESTALE
    ):
        return VanishedError(path)
    return LibraryError(
        f"The library's file {path} cannot be read ({_first_line(error)}). Bring it back from a "
        "copy, or delete it, and its pages will be done again."
    )


def unwritable(path: str, error: Exception) -> LibraryError:
    """The error for a file that could not be written or removed."""
    return LibraryError(
        f"The library could not write {path} ({_first_line(error)}); nothing that had landed is "
        "lost. Free space or rights there, then run again."
    )


def unlistable(path: str, error: Exception) -> LibraryError:
    """The error for a folder that could not be listed."""
    return LibraryError(
        f"The library's {path} cannot be listed ({_first_line(error)}); see whether the disk or "
        "the service is there, then run again."
    )


def settled(listing: Callable[[], dict[str, int]]) -> dict[str, int]:
    """A listing that no merge of files has passed through while it was read.

    A long listing is read in pieces, and a merge in between could hide both the parts and the
    whole: two equal listings in a row show that nothing moved.
    """
    names = listing()
    while len(names) > 200:
        again = listing()
        if again.keys() == names.keys():
            break
        names = again
    return names


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n", 1)[0].rstrip(".")
