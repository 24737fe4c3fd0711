"""Requests on their way to a provider, in a file of this machine until they are sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from uuid import uuid4

from ...providers.provider import Call, Group
from ..processes import process_lives, this_process

__all__ = ["Spool", "SpoolPart"]

_BUFFER = 1 << 18


@dataclass
class SpoolPart:
    """One batch's requests: lines in `path`, and by call id where the call's body lies in it.

    `calls` are the ids by page, `size` the bytes so far.
    """

    group: Group
    path: Path
    size: int
    bodies: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    # Bodies that their line does not hold byte by byte, such as those with line ends.
    _written_otherwise: dict[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    _written: int = 0
    _stream: IO[bytes] | None = field(default=None, repr=False)

    def has(self, call_id: str) -> bool:
        """Whether the call is in it: equal pages ask once."""
        return call_id in self.bodies

    def add(self, page_id: str, call_id: str, line: bytes, body: bytes) -> None:
        """Appends a request of a page, whose call is not in it yet."""
        self.calls[page_id] = call_id
        if self._stream is None:
            self._stream = self.path.open("wb", buffering=_BUFFER)
        start = _start(line, body)
        if start < 0:
            self._written_otherwise[call_id] = body
        self.bodies[call_id] = (self._written + start, len(body))
        self._stream.write(line)
        self._written += len(line)
        self.size += len(line)

    def finish(self) -> None:
        """Ends the writing."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def each(self, provider: str) -> Iterator[tuple[str, Call]]:
        """The calls by their ids, read from the file one after another."""
        with self.path.open("rb") as stream:
            for call_id, (offset, length) in self.bodies.items():
                body = self._written_otherwise.get(call_id)
                if body is None:
                    stream.seek(offset)
                    body = stream.read(length)
                yield call_id, Call(provider, self.group, body)

    def remove(self) -> None:
        """Deletes the file."""
        self.finish()
        self.path.unlink(missing_ok=True)


def _start(line: bytes, body: bytes) -> int:
    """Where the body begins in its line, -1 when it is not there as it is.

    It is looked for at the end first, where lines have it: a search for hundreds of kilobytes
    takes longer than writing them.
    """
    for tail in (b"\n", b"}\n"):
        start = len(line) - len(body) - len(tail)
        if start >= 0 and line.endswith(tail) and line.startswith(body, start):
            return start
    return line.find(body)


class Spool:
    """A folder of this process for the parts it is making. What dead processes left is swept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / f"{this_process()}~{uuid4().hex[:8]}"
        _sweep(folder)

    def part(self, group: Group, overhead: int) -> SpoolPart:
        """An empty part."""
        # Requests hold the pages themselves: nobody else on the machine is to read them.
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return SpoolPart(group, self._folder / f"{uuid4().hex}.jsonl", overhead)

    def close(self) -> None:
        """Deletes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _sweep(folder: Path) -> None:
    with suppress(OSError):
        for each in os.scandir(folder):
            if process_lives(each.name.partition("~")[0]) is False:
                shutil.rmtree(each.path, ignore_errors=True)
