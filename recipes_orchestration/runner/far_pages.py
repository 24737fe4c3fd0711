"""The pages of a task folder, and the values that were sent with it."""

from __future__ import annotations

import hashlib
import posixpath
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import PlaceError, SourceError
from ..pages.page import Page
from ..pages.source import SourceReader
from .checked_json import json_of
from .journal import lines_of
from .task_folder import MAX_LINE_BYTES, NEEDS, Manifest, ManifestPage

__all__ = ["FarPages", "SentValues"]


class FarPages:
    """Gives the pages of a task with their bytes, which are checked before they are used."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._max_pixels = manifest.max_pixels
        # The page files lie beside the task folder, so they are read from the batch folder.
        self._below = "/".join(folder.parts[-2:])
        self._reader = SourceReader(str(folder.parent.parent))
        # The file of several pages that was read last: its next page follows as a rule.
        self._last: tuple[str, bytes] | None = None

    def page(self, page: ManifestPage) -> Page:
        """The page as a step sees it: with the name of its source's file, its bytes on demand."""
        return Page(
            page_id=page.page_id,
            sha256=page.sha256,
            file=_file_of(page),
            frame=page.frame,
            fetch=partial(self._bytes, page),
            max_pixels=self._max_pixels,
        )

    def _bytes(self, page: ManifestPage) -> bytes:
        if self._last is not None and self._last[0] == page.file_sha256:
            return self._last[1]
        self._last = None
        data = self._reader.read(posixpath.normpath(posixpath.join(self._below, page.file)))
        if hashlib.sha256(data).hexdigest() != page.file_sha256:
            raise SourceError(
                f"The file of the page {page.page_id} is not the one that was sent: its "
                f"{len(data):,} bytes have another checksum. Run the recipe again to send it anew."
            )
        if page.frame is not None:
            self._last = page.file_sha256, data
        return data


def _file_of(page: ManifestPage) -> str:
    """The file in the source: the page's name, without the number of a page inside a file."""
    file, mark, number = page.page_id.rpartition("#")
    # A file that is the page has the page's own hash.
    inside = page.frame is not None or page.sha256 != page.file_sha256
    return file if inside and mark and number.isdigit() else page.page_id


class SentValues:
    """Landed values that steps of the task need, in a file beside its manifest, read on demand."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._path = folder / NEEDS
        self._where: dict[tuple[str, str], int] = {}
        if not manifest.needs:
            return
        try:
            with self._path.open("rb") as stream:
                for offset, line in lines_of(stream):
                    told = _told(line)
                    if told is None:
                        raise PlaceError(
                            f"{NEEDS} of the task is damaged at byte {offset:,}. Send it again."
                        )
                    self._where[told["page_id"], told["step"]] = offset
        except OSError as error:
            raise PlaceError(
                f"{NEEDS} of the task cannot be read: {error.strerror}. Send it again."
            ) from error

    def has(self, page_id: str, step: str) -> bool:
        """Whether the step's value for the page was sent."""
        return (page_id, step) in self._where

    def value(self, page_id: str, step: str) -> Any:
        """The step's value for the page."""
        with self._path.open("rb") as stream:
            stream.seek(self._where[page_id, step])
            told = _told(stream.readline(MAX_LINE_BYTES + 1))
        if told is None:
            raise PlaceError(f"{NEEDS} of the task has changed while it was in use. Run it again.")
        return told["value"]


def _told(line: bytes) -> dict[str, Any] | None:
    try:
        told = json_of(line)
    except ValueError:
        return None
    if not isinstance(told, dict) or "value" not in told:
        return None
    texts = isinstance(told.get("page_id"), str) and isinstance(told.get("step"), str)
    return told if texts else None
