"""The raw answers of a provider, kept in the library beside the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.errors import LibraryError, ProviderError
from recipes_orchestration.library.library import Library

WHERE = ("letters", "read", "a/0001", "read-1")


@pytest.fixture(params=["disk", "memory"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Library:
    return Library(str(tmp_path / "library") if request.param == "disk" else f"memory://{tmp_path}")


def test_answers_come_back_line_by_line_as_they_were(library: Library) -> None:
    lines = [b'{"a": 1}', "x\u2028y\u2029z\x85".encode(), b"cr\r", b"\xff\xfe", b"", b"null"]
    library.keep_answers(*WHERE, lines)
    assert library.has_answers(*WHERE)
    assert list(library.answers(*WHERE)) == lines


def test_many_large_lines_come_back(library: Library) -> None:
    lines = [bytes([65 + number % 26]) * 300_000 for number in range(20)]
    library.keep_answers(*WHERE, iter(lines))
    assert list(library.answers(*WHERE)) == lines


def test_no_answers_are_none(library: Library) -> None:
    assert not library.has_answers(*WHERE)
    assert list(library.answers(*WHERE)) == []


def test_answers_are_no_results(library: Library) -> None:
    library.keep_answers(*WHERE, [b"{}"])
    assert library.landed(*WHERE[:3]) == set()
    assert list(library.batches("letters", "read")) == []


def test_a_fetch_that_breaks_off_keeps_nothing(library: Library) -> None:
    def lines():
        yield b"{}"
        raise ProviderError("gone")

    with pytest.raises(ProviderError):
        library.keep_answers(*WHERE, lines())
    assert not library.has_answers(*WHERE)
    assert list(library.answers(*WHERE)) == []


def test_damaged_answers_say_which_file(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    library.keep_answers(*WHERE, [b"{}" * 1000])
    file = next(tmp_path.rglob("*.gz"))
    file.write_bytes(b"not compressed")
    with pytest.raises(LibraryError, match=r"read-1\.answers"):
        list(library.answers(*WHERE))
