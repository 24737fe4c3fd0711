from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st


def _load() -> Any:
    path = Path(__file__).parents[1] / "benchmarks" / "read_quality.py"
    spec = importlib.util.spec_from_file_location("read_quality", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["read_quality"] = module
    spec.loader.exec_module(module)
    return module


read_quality = _load()


def _slowly(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for number, char in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, against in enumerate(other, 1):
            before, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, before + (char != against)),
            )
    return row[-1]


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_the_edit_distance_is_that_of_the_textbook(one: str, other: str) -> None:
    assert read_quality.distance(one, other) == _slowly(one, other)


def test_typography_and_line_ends_are_no_errors() -> None:
    assert read_quality.tidy("“to-\n  day” –  it is\n") == read_quality.tidy('"today" - it is')


def _score(collection: str, ours: int, bare: int) -> Any:
    return read_quality.Score(collection, "p", 1000, ours, bare, 1.0, 1.0, 1.0, None, None)


def test_only_printed_english_over_the_bare_engine_fails() -> None:
    assert read_quality.report([_score("old-books-en", 15, 10)]) == 0
    assert read_quality.report([_score("old-books-en", 16, 10)]) == 1
    assert read_quality.report([_score("misc-print (English)", 16, 10)]) == 1
    assert read_quality.report([_score("testaments-de-poilus", 900, 10)]) == 0
