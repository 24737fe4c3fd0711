"""The page files of a batch folder: written once, whole, and known again without being read.

    pages/<sha256>.<ext>   the files, by the hash of their bytes
    pages.jsonl            one line for each: what it was made of, its name, size and hash
    parts/<process>~<id>/  what a process is writing

A file gets its name when it is whole, and its line after that. So a kill at any moment leaves a
file without a line, which is written anew, or a part, which is swept. A line is believed when the
file is there and has its size: a file that lost its content in a power cut has another. Nothing is
synced to disk, as all of it can be made again; whoever reads a file compares its hash.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from ...errors import PlaceError
from ...pages.contents import Kind, kind_of
from ...runner.task_folder import MAX_LINE_BYTES, PAGES, decode_line, encode_line
from ..processes import process_lives, this_process

__all__ = ["INDEX", "PARTS", "PageFile", "PageFiles", "extension_of", "folder_error", "sweep_parts"]

INDEX = "pages.jsonl"
PARTS = "parts"

_EXTENSIONS = {
    Kind.JPEG: "jpg",
    Kind.PNG: "png",
    Kind.TIFF: "tif",
    Kind.WEBP: "webp",
    Kind.JPEG2000: "jp2",
    Kind.GIF: "gif",
    Kind.BMP: "bmp",
    Kind.AVIF: "avif",
    Kind.HEIC: "heic",
    Kind.PDF: "pdf",
}
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class PageFile(NamedTuple):
    """A file of `pages/`: its name there, its size in bytes and the hash of its bytes."""

    name: str
    size: int
    sha256: str


def extension_of(data: bytes) -> str:
    """The usual extension of what the bytes are."""
    kind = kind_of(data)
    return "bin" if kind is None else _EXTENSIONS[kind]


class PageFiles:
    """The page files of the batch folder `folder`. Not for several threads at a time.

    Several processes may write into one folder. Every method raises `PlaceError` when the disk
    does not let it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = os.fspath(folder / PAGES)
        self._own = folder / PARTS / f"{this_process()}~{uuid4().hex[:8]}"
        self._parts = 0
        try:
            # Pages of an archive may be nobody else's business on this machine.
            for each in (folder / PAGES, self._own):
                each.mkdir(parents=True, exist_ok=True, mode=0o700)
            sweep_parts(folder)
            self._index = os.open(folder / INDEX, _APPEND, 0o600)
        except OSError as error:
            raise folder_error(folder, error) from error
        self._known = self._read_index()

    def known(self, made_of: str) -> PageFile | None:
        """The file that was made of that, when it is there as it was written."""
        found = self._known.get(made_of)
        if found is None:
            return None
        try:
            status = os.lstat(f"{self._pages}/{found.name}")
        except OSError:
            return None
        return found if stat.S_ISREG(status.st_mode) and status.st_size == found.size else None

    def keep(self, made_of: str, data: bytes, sha256: str) -> PageFile:
        """Writes the bytes, whose hash is given, as a file, unless it was written already."""
        file = PageFile(f"{sha256}.{extension_of(data)}", len(data), sha256)
        part = self.part()
        try:
            _write(part, data)
        except OSError as error:
            with suppress(OSError):
                os.unlink(part)  # noqa: PTH108
            raise folder_error(self._folder, error) from error
        return self.take(made_of, part, file)

    def part(self) -> str:
        """The path of a file that may be written and then taken."""
        self._parts += 1
        return f"{self._own}/{self._parts}"

    def take(self, made_of: str, part: str, file: PageFile) -> PageFile:
        """Gives a whole part its name and writes its line."""
        try:
            os.rename(part, f"{self._pages}/{file.name}")  # noqa: PTH104  (a hot loop)
        except OSError as error:
            raise folder_error(self._folder, error) from error
        return self.note(made_of, file)

    def note(self, made_of: str, file: PageFile) -> PageFile:
        """Writes down that a file which is there is made of that too."""
        try:
            os.write(self._index, encode_line({"made_of": made_of, **file._asdict()}))
        except OSError as error:
            raise folder_error(self._folder, error) from error
        self._known[made_of] = file
        return file

    def close(self) -> None:
        """Ends the writing."""
        if self._index >= 0:
            os.close(self._index)
            self._index = -1
            shutil.rmtree(self._own, ignore_errors=True)

    def _read_index(self) -> dict[str, PageFile]:
        """The lines that are whole. One that is not gets its end, so that the next one is whole."""
        known: dict[str, PageFile] = {}
        last = b"\n"
        with open(self._index, "rb", closefd=False) as stream:
            stream.seek(0)
            while line := stream.readline(MAX_LINE_BYTES):
                last = line
                entry = decode_line(line)
                if entry is not None and (file := _file_of(entry)) is not None:
                    known[str(entry.get("made_of"))] = file
        if not last.endswith(b"\n"):
            os.write(self._index, b"\n")
        return known


def folder_error(folder: Path, error: OSError) -> PlaceError:
    """That a folder in which tasks are packed could not be written, for a person."""
    return PlaceError(
        f"The folder {folder}, in which tasks are packed, could not be written: "
        f"{error.strerror or error}. Make room or mend it and run the recipe again."
    )


def _file_of(entry: dict[str, object]) -> PageFile | None:
    name, size, sha256 = entry.get("name"), entry.get("size"), entry.get("sha256")
    if isinstance(name, str) and isinstance(size, int) and isinstance(sha256, str):
        return PageFile(name, size, sha256) if "/" not in name else None
    return None


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, _NEW, 0o600)
    try:
        written = os.write(descriptor, data)
        while written < len(data):
            written += os.write(descriptor, memoryview(data)[written:])
    finally:
        os.close(descriptor)


def sweep_parts(folder: Path) -> None:
    """Removes what dead processes left that were packing into the batch folder."""
    for each in os.scandir(folder / PARTS):
        if process_lives(each.name.partition("~")[0]) is False:
            shutil.rmtree(each.path, ignore_errors=True)
