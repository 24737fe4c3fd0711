"""Values that stay in their table until they are asked for, and files too large to be merged."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.errors import LibraryError
from recipes_orchestration.library import Library, Result, values

STEP = ("letters", "read", "a/0001")
AT = datetime(2026, 11, 1, tzinfo=UTC)


def result(number: int, value: Any) -> Result:
    return Result(f"a/{number:05d}.png", f"key-{number}", value, 0.5, "task", AT)


def land(library: Library, part: int, results: Sequence[Result]) -> None:
    library.land(*STEP, "task", part, results)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("**/*.parquet"))


VALUES = ({"text": 'ä\u2028 \\ " \x7f'}, ["a", 1.5, None], {"a": {"b": [True]}}, "words", 0)


def test_a_value_that_is_looked_up_is_what_was_landed(tmp_path: Path):
    library = Library(str(tmp_path))
    rows = [result(number, value) for number, value in enumerate(VALUES)]
    land(library, 1, rows[:2])
    land(library, 2, rows[2:])
    found = library.lookup(*STEP, {row.page_id: row.key for row in rows})
    assert dict(found) == {row.page_id: row.value for row in rows}
    values = library.values(*STEP, {(row.page_id, row.key) for row in rows})
    assert {page_id: value for (page_id, _), value in values.items()} == dict(found)


def test_only_values_that_were_asked_for_are_there(tmp_path: Path):
    library = Library(str(tmp_path))
    land(library, 1, [result(number, number) for number in range(5)])
    wanted = {"a/00003.png": "key-3", "a/00009.png": "key-9", "a/00001.png": "other"}
    found = library.lookup(*STEP, wanted)
    assert dict(found) == {"a/00003.png": 3}
    assert "a/00001.png" not in found


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=60),
    st.lists(st.integers(0, 99), min_size=1, max_size=60),
    st.lists(st.integers(0, 99), max_size=200),
    st.integers(1, 7),
)
def test_values_are_the_same_in_whatever_order_they_are_asked_for(
    first: list[int], second: list[int], asked: list[int], portion: int
):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_MOST", portion)
        patch.setattr(values, "_FEWEST", 1)
        library = Library(folder)
        for part, numbers in enumerate((first, second)):
            land(library, part, [result(number, {"text": f"{number}"}) for number in set(numbers)])
        there = {*first, *second}
        found = library.lookup(*STEP, {f"a/{number:05d}.png": f"key-{number}" for number in there})
        assert len(found) == len(there)
        for number in asked:
            page_id = f"a/{number:05d}.png"
            assert (page_id in found) == (number in there)
            if number in there:
                assert found[page_id] == {"text": f"{number}"}


def test_of_a_page_that_landed_twice_the_first_value_counts(tmp_path: Path):
    library = Library(str(tmp_path))
    land(library, 1, [result(1, "late")._replace(landed_at=AT + timedelta(seconds=1))])
    land(library, 2, [result(1, "early")])
    assert dict(library.lookup(*STEP, {"a/00001.png": "key-1"})) == {"a/00001.png": "early"}


def test_values_that_cannot_be_read_name_their_file(tmp_path: Path):
    library = Library(str(tmp_path))
    land(library, 1, [result(number, {"text": secrets.token_hex(2000)}) for number in range(50)])
    (file,) = files(tmp_path)
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    file.write_bytes(data)
    found = library.lookup(*STEP, {f"a/{number:05d}.png": f"key-{number}" for number in range(50)})
    with pytest.raises(LibraryError, match=file.name):
        dict(found)


def test_nothing_is_found_where_nothing_has_landed(tmp_path: Path):
    assert dict(Library(str(tmp_path)).lookup(*STEP, {"a/1.png": "key"})) == {}


def test_files_of_a_thousand_rows_are_left_as_they_are(tmp_path: Path):
    library = Library(str(tmp_path))
    for part in range(3):
        land(library, part, [result(part * 1000 + row, row) for row in range(1000)])
    before = files(tmp_path)
    library.compact(*STEP)
    assert files(tmp_path) == before
    for row in range(3):
        land(library, 3 + row, [result(5000 + row, row)])
    library.compact(*STEP)
    assert len(files(tmp_path)) == 4
    assert set(before) < set(files(tmp_path))
    assert len(library.landed(*STEP)) == 3003


@pytest.mark.parametrize("field", ["page_id", "key", "model", "task", "note"])
def test_half_a_character_names_the_page_and_the_field(tmp_path: Path, field: str):
    row = result(1, "fine")._replace(**{field: "half \ud800"})
    with pytest.raises(LibraryError, match=field.replace("_", " ")):
        land(Library(str(tmp_path)), 1, [result(2, "fine"), row])
