"""Cuts a stream of bytes into lines at `\\n` alone, holding one line at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["MAX_LINE", "split_lines"]

# No answer of a model comes near it: 64 MiB.
MAX_LINE = 64 * 1024 * 1024
# What is kept of a longer line, so that its reader counts it as broken.
STUMP = 1000


def split_lines(chunks: Iterable[bytes], max_line: int = MAX_LINE) -> Iterator[bytes]:
    """The lines without their ends (`\\n` or `\\r\\n`), empty ones left out.

    Of a line that is longer than `max_line` bytes only the beginning is given, which is no JSON.
    """
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            if pending:
                pending.append(piece)
                line = _line(pending, size + len(piece), max_line)
                pending, size = [], 0
            else:  # most lines lie in one chunk
                line = piece.removesuffix(b"\r") if len(piece) <= max_line else piece[:STUMP]
            if line:
                yield line
        size += len(rest)
        if size <= max_line:
            pending.append(rest)
        elif len(pending) != 1 or len(pending[0]) > STUMP:
            pending = [b"".join(pending)[:STUMP] or rest[:STUMP]]
    line = _line(pending, size, max_line)
    if line:
        yield line


def _line(pieces: list[bytes], size: int, max_line: int) -> bytes:
    if size > max_line:
        return b"".join(pieces)[:STUMP]
    return b"".join(pieces).removesuffix(b"\r")
