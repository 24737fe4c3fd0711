from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from recipes_orchestration.steps.windows import is_strip, strip_windows, tiles

from .drawn_pages import drawn


def _covers(size: tuple[int, int], windows: list[tuple[int, int, int, int]]) -> bool:
    seen = Image.new("L", size, 0)
    area = 0
    for left, top, right, bottom in windows:
        assert left < right
        assert top < bottom
        seen.paste(255, (left, top, right, bottom))
        area += (right - left) * (bottom - top)
    return seen.getextrema() == (255, 255) and area == size[0] * size[1]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 700), st.integers(1, 700), st.integers(20, 300))
def test_tiles_cover_each_pixel_once(width: int, height: int, side: int) -> None:
    image = Image.effect_noise((width, height), 90)
    assert _covers(image.size, list(tiles(image, side)))


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.floats(4.1, 200), st.booleans())
def test_strips_are_covered_by_few_windows(short: int, ratio: float, wide: bool) -> None:
    long = int(short * ratio) + 1
    image = Image.effect_noise((long, short) if wide else (short, long), 90)
    assert is_strip(image.size)
    windows = list(strip_windows(image))
    assert len(windows) <= 40
    assert _covers(image.size, windows)


def test_pages_are_no_strips() -> None:
    assert not is_strip((1000, 1400))
    assert not is_strip((1, 1))


def test_borders_lie_between_the_lines() -> None:
    image = drawn([f"line {number}" for number in range(40)], size=(300, 2460))
    darkest = np.asarray(image).min(axis=1)
    inked = {row for row, value in enumerate(darkest) if value < 99}
    borders = {top for _, top, _, _ in strip_windows(image)} - {0}
    assert len(borders) == 3
    assert not borders & inked
