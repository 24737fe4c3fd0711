"""Cutting a stream of bytes into lines."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from recipes_orchestration.providers.byte_lines import split_lines

TEXT = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg".encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_end_at_line_feeds_alone_however_they_arrive(size: int):
    data = b"one\n" + TEXT + b"\n\nthree\r\nlast"
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(split_lines(chunks)) == [b"one", TEXT, b"three", b"last"]


def test_nothing_gives_no_lines():
    assert list(split_lines([])) == list(split_lines([b"", b"\n\r\n"])) == []


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_line_that_is_too_long_is_cut_and_the_next_one_whole(size: int):
    data = b"x" * 50 + b"\nnext\n" + b"y" * 20 + b"\n" + b"z" * 21
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    lines = list(split_lines(chunks, max_line=20))
    assert [line[:1] for line in lines] == [b"x", b"n", b"y", b"z"]
    assert lines[1] == b"next"
    assert lines[2] == b"y" * 20


def test_an_endless_line_takes_no_memory():
    def endless() -> Iterator[bytes]:
        for _ in range(2_000):
            yield b"x" * 100_000

    tracemalloc.start()
    (line,) = split_lines(endless(), max_line=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(line) <= 1_000_000
    assert peak < 5_000_000
