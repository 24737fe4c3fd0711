"""Results of a task on a far side: a file that only grows, a line for each page and step."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import PlaceError
from .task_folder import MAX_LINE_BYTES, decode_line, encode_line
from .work import Outcome

__all__ = ["Entry", "Journal", "entries_of", "lines_of"]

_SYNC_SECONDS = 1.0
_CHUNK = 1 << 20
_LONGEST_SECONDS = 1e9


@dataclass(frozen=True)
class Entry:
    """A line that says how a step ended on a page; `failed` is the failure's kind, None if landed.

    `offset` and `size` say where it lies in the file, `value` is the result.
    """

    page_id: str
    step: str
    seconds: float
    failed: str | None
    offset: int
    size: int
    value: Any = None
    words: str = ""


def lines_of(stream: BufferedReader, longest: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines with their ends and where each begins, one at a time in memory.

    Of a line longer than `longest` the first bytes are given, without an end.
    """
    offset = 0
    while line := stream.readline(longest + 1):
        size = len(line)
        if not line.endswith(b"\n"):
            while rest := stream.readline(_CHUNK):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
        yield offset, line
        offset += size


def entries_of(stream: BufferedReader) -> Iterator[Entry]:
    """The whole entries of a journal; what is damaged is passed over, a page's step comes once."""
    seen: set[tuple[str, str]] = set()
    for offset, line in lines_of(stream):
        entry = _entry(offset, line)
        if entry is not None and (entry.page_id, entry.step) not in seen:
            seen.add((entry.page_id, entry.step))
            yield entry


class Journal:
    """The open file. Values are read back when they are asked for and not held in memory.

    What a killed writer left half-written is cut off when the file is opened; damage in front of
    whole lines, and lines that are there twice, are taken out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._where: dict[tuple[str, str], tuple[int, bool]] = {}
        self._size = 0
        self._open()
        self._synced = time.monotonic()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def written(self, page_id: str, step: str) -> bool:
        """Whether the step has ended on the page, well or not."""
        return (page_id, step) in self._where

    def landed(self, page_id: str, step: str) -> bool:
        """Whether the step has a value for the page."""
        return self._where.get((page_id, step), (0, False))[1]

    def value(self, page_id: str, step: str) -> Any:
        """The step's value for the page, read from the file. `KeyError` when there is none."""
        offset, landed = self._where[page_id, step]
        if not landed:
            raise KeyError(step)
        self._reader.seek(offset)
        entry = _entry(offset, self._reader.readline(MAX_LINE_BYTES + 1))
        if entry is None or (entry.page_id, entry.step) != (page_id, step):
            raise PlaceError(f"{self._path} has changed while it was in use. Run the task again.")
        return entry.value

    def append(self, outcome: Outcome) -> None:
        """Writes the outcome behind the others.

        Raises `PlaceError` when the disk does not take it; nothing of it is left in the file.
        """
        told: dict[str, Any] = {
            "page": outcome.page_id,
            "step": outcome.step,
            "seconds": round(outcome.seconds, 6),
        }
        if outcome.failure is None:
            told["value"] = outcome.value
        else:
            told["failure"] = {
                "kind": str(outcome.failure.kind),
                "words": outcome.failure.words,
            }
        line = encode_line(told)
        try:
            self._write(line)
        except OSError as error:
            # What is left of it is cut off when the file is opened again.
            os.ftruncate(self._descriptor, self._size)
            raise PlaceError(
                f"{self._path} cannot be written: {error.strerror}. Make room there and run the "
                "task again; what is written is kept."
            ) from error
        self._where[outcome.page_id, outcome.step] = self._size, outcome.failure is None
        self._size += len(line)
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Returns when the disk has what was appended."""
        os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Syncs and closes the file."""
        try:
            self.sync()
        finally:
            self._reader.close()
            os.close(self._descriptor)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _open(self) -> None:
        damaged = False
        end = 0
        if self._path.exists():
            with self._path.open("rb") as stream:
                for entry in entries_of(stream):
                    # A gap in front of it: damage, or a line that was there before.
                    damaged = damaged or entry.offset != end
                    end = entry.offset + entry.size
                    self._where[entry.page_id, entry.step] = entry.offset, entry.failed is None
        if damaged:
            self._rewrite()
        else:
            self._size = end
        self._descriptor = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        os.ftruncate(self._descriptor, self._size)
        self._reader = self._path.open("rb")

    def _rewrite(self) -> None:
        """Makes a file of the whole entries alone and puts it in the place of the damaged one."""
        beside = self._path.with_name(f".{self._path.name}.mended")
        self._where.clear()
        self._size = 0
        with self._path.open("rb") as stream, beside.open("wb") as mended:
            with self._path.open("rb") as source:
                for entry in entries_of(stream):
                    source.seek(entry.offset)
                    mended.write(source.read(entry.size))
                    self._where[entry.page_id, entry.step] = self._size, entry.failed is None
                    self._size += entry.size
            mended.flush()
            os.fsync(mended.fileno())
        beside.replace(self._path)


def _entry(offset: int, line: bytes) -> Entry | None:
    told = decode_line(line) if line.endswith(b"\n") else None
    if told is None:
        return None
    page, step, seconds, failure = (
        told.get(name) for name in ("page", "step", "seconds", "failure")
    )
    if not isinstance(page, str) or not isinstance(step, str):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds < _LONGEST_SECONDS:
        return None
    if failure is None:
        if "value" not in told:
            return None
        return Entry(page, step, float(seconds), None, offset, len(line), told["value"])
    if not isinstance(failure, dict):
        return None
    kind, words = failure.get("kind"), failure.get("words")
    if not isinstance(kind, str) or not isinstance(words, str):
        return None
    return Entry(page, step, float(seconds), kind, offset, len(line), words=words)
