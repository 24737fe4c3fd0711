"""The raw answer lines of a provider, kept beside the results that were made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

from isal import igzip
from isal.igzip_lib import IsalError

from ..errors import LibraryError
from .paths import checked_name

__all__ = ["MAX_LINE_BYTES", "answers_name", "read_lines", "write_lines"]

MAX_LINE_BYTES = 64_000_000
"""A longer line is cut off; what is left of it cannot be read as an answer."""

_BLOCK = 1 << 20
_SUFFIX = ".answers.jsonl.gz"


def answers_name(task: str) -> str:
    """The name of the file with the answers of a task; no result file has such a name."""
    return f"{checked_name(task, 'task')}{_SUFFIX}"


def write_lines(lines: Iterable[bytes], stream: IO[bytes]) -> None:
    """Writes lines, each without its line end, as one gzip file. Streams."""
    # Level 1: the answers are few beside what they cost, and landing waits for it.
    with igzip.IGzipFile(fileobj=stream, mode="wb", compresslevel=1, mtime=0) as sink:
        block = bytearray()
        for line in lines:
            block += line[:MAX_LINE_BYTES]
            block += b"\n"
            if len(block) > _BLOCK:
                sink.write(block)
                block.clear()
        sink.write(block)


def read_lines(stream: IO[bytes], path: str) -> Iterator[bytes]:
    """The lines of such a file; `LibraryError` naming `path` when it is damaged. Streams.

    Split at `\\n` alone: an answer may hold any other line end of Unicode.
    """
    try:
        with igzip.IGzipFile(fileobj=stream, mode="rb") as source:
            rest = b""
            while block := source.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                yield from lines
            if rest:
                yield rest
    except (OSError, EOFError, IsalError) as error:  # pyright: ignore[reportGeneralTypeIssues]
        raise LibraryError(
            f"The answers kept in {path} cannot be read ({error}). Bring the file back from a "
            "copy, or delete it while the provider still has the results."
        ) from error
