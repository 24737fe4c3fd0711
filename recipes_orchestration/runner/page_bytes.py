"""A page of a task, with the bytes that it had when it was discovered."""

from __future__ import annotations

import hashlib
from functools import partial

from ..errors import SourceError
from ..pages.page import Apart, Page
from ..pages.source import SourceReader
from .work import PageWork

__all__ = ["page_bytes", "page_file", "page_of"]

# The file of several pages that was read last: its next page follows at once as a rule.
_last: dict[tuple[str, str], tuple[str, bytes]] = {}


def page_of(
    reader: SourceReader, work: PageWork, max_pixels: int, apart: Apart | None = None
) -> Page:
    """The page as a step sees it. Its bytes are fetched when they are asked for."""
    return Page(
        page_id=work.page_id,
        sha256=work.sha256,
        file=work.file,
        frame=work.frame,
        fetch=partial(page_bytes, reader, work),
        max_pixels=max_pixels,
        apart=apart,
    )


def page_bytes(reader: SourceReader, work: PageWork) -> bytes:
    """The bytes of the page's file, whose hash is the one that its key was made of.

    Raises `SourceError` when the file cannot be fetched now, or is another one by now: its result
    would land under a key that says otherwise.
    """
    return page_file(reader, work)[1]


def page_file(reader: SourceReader, work: PageWork) -> tuple[str, bytes]:
    """As `page_bytes`, with the SHA-256 of the file before its bytes."""
    digest, data = _read(reader, work)
    expected = digest if work.frame is None else _sha256(f"{digest}#{work.frame}".encode())
    if expected != work.sha256:
        raise SourceError(
            f"{work.file} has changed since it was discovered. Find it anew with: recipes discover"
        )
    return digest, data


def _read(reader: SourceReader, work: PageWork) -> tuple[str, bytes]:
    if work.data is not None:
        return _sha256(work.data), work.data
    place = (reader.root, work.file)
    kept = _last.get(place) if work.frame is not None else None
    if kept is not None:
        digest, data = kept
        if _sha256(f"{digest}#{work.frame}".encode()) == work.sha256:
            return digest, data
    data = reader.read(work.file)
    digest = _sha256(data)
    _last.clear()
    if work.frame is not None:
        _last[place] = digest, data
    return digest, data


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
