"""Bodies of requests: taken in without filling the memory, and cut into requests by bytes."""

from __future__ import annotations

import mmap
import re
from array import array
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import cast

from starlette.requests import Request

__all__ = ["Body", "Buffer", "Lines", "TooLarge", "array_lines", "file_lines", "receive"]

IN_MEMORY = 32 * 2**20
Buffer = bytes | mmap.mmap

# A bracket, a short string as a whole, or the beginning of any other string.
_TOKEN = re.compile(rb'"[^"\\]{0,500}"|["{}\[\]]')
_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_CLOSED_BY = {ord("{"): ord("}"), ord("["): ord("]")}


class TooLarge(Exception):
    """The body is larger than its endpoint takes."""


class Body:
    """What was received: bytes, or a file without a name mapped into memory when it is large."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer: Buffer = buffer
        self.size = len(buffer)

    def bytes(self, start: int = 0, end: int | None = None) -> bytes:
        """A copy of a part."""
        return self.buffer[start : self.size if end is None else end]


async def receive(request: Request, limit: int) -> Body:
    """The whole body. Raises `TooLarge` when it has ended and was over `limit` bytes."""
    size = 0
    with SpooledTemporaryFile[bytes](max_size=IN_MEMORY) as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= limit:
                file.write(chunk)
        if size > limit:
            raise TooLarge
        if size <= IN_MEMORY:
            file.seek(0)
            return Body(file.read())
        file.flush()
        return Body(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Lines:
    """The requests of a batch: their ids, and where each one's JSON lies in the body."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.ids: list[str] = []
        self._starts = array("Q")
        self._ends = array("Q")

    def add(self, id: str, start: int, end: int) -> None:
        """One more request."""
        self.ids.append(id)
        self._starts.append(start)
        self._ends.append(end)

    def __len__(self) -> int:
        return len(self.ids)

    def raw(self, number: int) -> bytes:
        """The JSON of one request."""
        return self.body.bytes(self._starts[number], self._ends[number])


def array_lines(body: Body, *, id_key: bytes, body_key: bytes) -> Lines:
    """The requests of `{"requests": [{<id_key>: "...", <body_key>: {...}}, ...]}`.

    Read by their brackets, so that nothing is parsed. Raises `ValueError` when the brackets do
    not match, or an element lacks one of the two keys or has another.
    """
    lines = Lines(body)
    quoted = (b'"' + id_key + b'"', b'"' + body_key + b'"')
    inside: list[int] = []
    id: str | None = None
    key = b""
    start = end = -1
    wants_value = False
    for at, stop in _tokens(body.buffer):
        first = body.buffer[at]
        depth = len(inside)
        if first in _CLOSED_BY:
            if depth == 3 and key == quoted[1]:
                start = at
            inside.append(_CLOSED_BY[first])
            if depth == 2:
                id, key, start, end, wants_value = None, b"", -1, -1, False
        elif first != _QUOTE:
            if not inside or inside.pop() != first:
                raise ValueError("brackets do not match")
            if depth == 4 and key == quoted[1]:
                end, wants_value = at + 1, False
            elif depth == 3:
                if id is None or end < 0:
                    raise ValueError(f"requests.{len(lines)}")
                lines.add(id, start, end)
        elif depth == 3:
            token = body.bytes(at, stop)
            if wants_value:
                id, wants_value = token[1:-1].decode(), False
            else:
                if token not in quoted:
                    raise ValueError(f"requests.{len(lines)}.{token[1:-1].decode()}")
                key, wants_value = token, token == quoted[0]
    if inside:
        raise ValueError("the JSON ends too early")
    return lines


def _tokens(buffer: Buffer) -> Iterator[tuple[int, int]]:
    at: int | None = 0
    while at is not None:
        begin, at = at, None
        for match in _TOKEN.finditer(cast(bytes, buffer), begin):
            start, stop = match.span()
            if stop - start == 1 and buffer[start] == _QUOTE:
                # Long, or with escapes: to look for its end is much faster than to match it.
                at = _string_end(buffer, stop)
                yield start, at
                break
            yield start, stop


def _string_end(buffer: Buffer, at: int) -> int:
    while True:
        end = buffer.find(b'"', at)
        if end < 0:
            raise ValueError("a string has no end")
        before = end
        while buffer[before - 1] == _BACKSLASH:
            before -= 1
        if (end - before) % 2 == 0:
            return end + 1
        at = end + 1


def file_lines(body: Body, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each line that is not blank begins and ends in a body of JSON lines."""
    at, last = start, body.size if end is None else end
    while at < last:
        stop = body.buffer.find(b"\n", at, last)
        stop = last if stop < 0 else stop
        if body.bytes(at, min(stop, at + 64)).strip() or body.bytes(at, stop).strip():
            yield at, stop
        at = stop + 1
