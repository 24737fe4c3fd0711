"""Reads and hashes page files, a few at a time, in their order."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

from ..errors import PageUnreadable, SourceError
from ..pages.probe import ProbedPage, pages_in, unopened
from ..pages.source import FileEntry, FileGone, SourceReader

__all__ = ["probe_files"]

_THREADS = 4
_FILES_AT_ONCE = 64
# Larger files are read one after another, so that four of two gigabytes are not held at once.
_LARGE = 64 << 20


def probe_files(
    reader: SourceReader, entries: Sequence[FileEntry]
) -> Generator[tuple[FileEntry, list[ProbedPage] | None]]:
    """Each file with its pages, in the order given; None when it has vanished meanwhile.

    In memory are the bytes of a few files, and the rows of at most 64. A file that cannot be
    opened is one page with the reason; when a later try may do better, its stamp is one that no
    file has, so that the next discovery tries it again.
    """
    one_large = Lock()

    def probed(entry: FileEntry) -> list[ProbedPage] | None:
        if entry.size < _LARGE:
            return _probed(reader, entry)
        with one_large:
            return _probed(reader, entry)

    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="probe")
    try:
        for start in range(0, len(entries), _FILES_AT_ONCE):
            portion = entries[start : start + _FILES_AT_ONCE]
            yield from zip(portion, pool.map(probed, portion), strict=True)
    finally:
        # The caller may have had enough; what has not begun is not read any more.
        pool.shutdown(cancel_futures=True)


def _probed(reader: SourceReader, entry: FileEntry) -> list[ProbedPage] | None:
    if entry.problem is not None:
        return [unopened(entry, entry.problem)]
    try:
        data = reader.read(entry.file)
    except FileGone:
        return None
    except SourceError as error:
        return [replace(unopened(entry, str(error)), stamp=f"?{entry.stamp}")]
    except PageUnreadable as error:
        return [unopened(entry, str(error))]
    return pages_in(entry, data)
