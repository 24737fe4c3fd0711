"""How many pages a file has, without decoding any."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ..errors import PageUnreadable
from . import pdf, tiff
from .contents import Kind, kind_of, what_else
from .listing import FileEntry
from .naming import page_id_of

__all__ = ["Probed", "ProbedPage", "pages_in", "probe", "unopened"]


@dataclass(frozen=True)
class Probed:
    """The pages of a file: `frames` counts from 0, `(None,)` says that the file is one page.

    With `problem` the file is no readable page, and is itself the one page that is held for it.
    """

    frames: tuple[int | None, ...] = (None,)
    problem: str | None = None


@dataclass(frozen=True)
class ProbedPage:
    """One page of a file as it is found: what the ledger records of it."""

    page_id: str
    file: str
    frame: int | None
    sha256: str
    size: int
    stamp: str
    problem: str | None = None


def probe(data: bytes) -> Probed:
    """The pages in a file's bytes, by its content.

    A PDF always has numbered pages, a TIFF when it has more than one. Of a GIF, WebP or MPO with
    several frames the first is the page: the others are movement or another eye, not pages.
    A picture is not decoded here, so one that is cut off is found out when it is read.
    """
    kind = kind_of(data)
    try:
        match kind:
            case None:
                return Probed(problem=what_else(data))
            case Kind.PDF:
                return Probed(tuple(range(pdf.count_pages(data))))
            case Kind.TIFF:
                return Probed(_tiff_frames(data))
            case _:
                return Probed()
    except PageUnreadable as unreadable:
        return Probed(problem=str(unreadable))


def pages_in(entry: FileEntry, data: bytes) -> list[ProbedPage]:
    """The pages of a file whose bytes have been read, each with its hash."""
    probed = probe(data)
    digest = hashlib.sha256(data).hexdigest()
    return [
        ProbedPage(
            page_id_of(entry.file, frame),
            entry.file,
            frame,
            digest if frame is None else _sha256(f"{digest}#{frame}"),
            len(data),
            entry.stamp,
            probed.problem,
        )
        for frame in probed.frames
    ]


def unopened(entry: FileEntry, problem: str) -> ProbedPage:
    """The one page that stands for a file that could not be read.

    Its hash is of name and stamp, as there are no bytes, so it equals no other page's.
    """
    digest = _sha256(f"unopened/{entry.file}/{entry.stamp}")
    return ProbedPage(entry.file, entry.file, None, digest, entry.size, entry.stamp, problem)


def _tiff_frames(data: bytes) -> tuple[int | None, ...]:
    found = tiff.directories(data)
    pages = [directory.index for directory in found if not directory.preview]
    if pages in ([], [0]):
        return (None,)
    return tuple(pages)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
