from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.steps.reading_order import reading_order

Polygon = list[list[float]]


def line(x: float, y: float, width: float = 400, height: float = 30) -> Polygon:
    return [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]


def column(x: float, y: float, count: int, width: float = 400) -> list[Polygon]:
    return [line(x, y + 50 * number, width) for number in range(count)]


def turned(polygon: Polygon, degrees: float) -> Polygon:
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return [[x * cosine - y * sine, x * sine + y * cosine] for x, y in polygon]


def ordered(polygons: list[Polygon], seed: int = 1) -> list[Polygon]:
    shuffled = list(polygons)
    random.Random(seed).shuffle(shuffled)
    return [shuffled[index] for index in reading_order(shuffled)]


def test_no_lines_have_an_order() -> None:
    assert reading_order([]) == []


def test_lines_are_read_from_top_to_bottom_and_rows_from_left_to_right() -> None:
    page = [line(0, 0, 100), line(300, 6, 100), line(600, -5, 100), line(0, 60), line(20, 120)]
    assert ordered(page) == page


@pytest.mark.parametrize("degrees", [0, -4, 4, 9])
def test_the_left_page_of_a_spread_comes_whole_before_the_right_one(degrees: float) -> None:
    spread = [*column(0, 0, 12), *column(520, 10, 12)]
    spread = [turned(polygon, degrees) for polygon in spread]
    assert ordered(spread) == spread


def test_three_columns_are_read_one_after_the_other() -> None:
    page = [*column(0, 0, 8, 200), *column(240, 5, 8, 200), *column(480, -5, 8, 200)]
    assert ordered(page) == page


def test_a_heading_over_columns_comes_first_and_one_between_ends_those_above() -> None:
    page = [
        line(50, -80, 800),
        *column(0, 0, 5),
        *column(520, 0, 5),
        line(100, 300, 700),
        *column(0, 400, 6),
        *column(520, 400, 6),
    ]
    assert ordered(page) == page


def test_full_lines_above_columns_do_not_hide_them() -> None:
    page = [*column(0, 0, 20, 920), *column(0, 1000, 10), *column(520, 1000, 10)]
    assert ordered(page) == page


def test_a_table_is_read_row_by_row() -> None:
    page = [
        cell
        for row in range(10)
        for cell in (line(0, 50 * row, 60), line(200, 50 * row, 120), line(800, 50 * row, 50))
    ]
    assert ordered(page) == page


def test_a_list_of_short_words_and_what_belongs_to_each_is_read_row_by_row() -> None:
    rows = [cell for row in range(5) for cell in (line(60, 50 * row, 150), line(300, 50 * row))]
    page = [line(0, -100, 950), *rows, line(0, 300, 950)]
    assert ordered(page) == page


def test_seven_columns_of_a_newspaper_are_read_one_after_the_other() -> None:
    page = [polygon for x in range(0, 1540, 220) for polygon in column(x, x % 7, 20, 200)]
    assert ordered(page) == page


def test_a_skewed_page_keeps_its_rows() -> None:
    rows = [cell for row in range(6) for cell in (line(0, 60 * row), line(420, 60 * row, 300))]
    rows += [line(0, 400, 900)]
    page = [turned(polygon, 5) for polygon in [*rows[:2], line(0, 30, 850), *rows[2:]]]
    assert ordered(page)[:2] == page[:2]


def test_a_page_on_its_side_is_read_as_if_turned_to_the_left() -> None:
    upright = [[[x, 0.0], [x + 30, 0.0], [x + 30, 400.0], [x, 400.0]] for x in range(500, 0, -50)]
    assert ordered(upright) == upright


@given(
    st.lists(
        st.tuples(*[st.floats(0, 5000) for _ in range(2)], *[st.floats(0, 900) for _ in range(2)]),
        max_size=40,
    ),
    st.floats(-30, 30),
)
def test_every_line_is_read_once_whatever_the_page(
    boxes: list[tuple[float, float, float, float]], degrees: float
) -> None:
    polygons = [turned(line(*box), degrees) for box in boxes]
    assert sorted(reading_order(polygons)) == list(range(len(polygons)))
