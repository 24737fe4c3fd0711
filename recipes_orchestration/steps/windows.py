"""A picture cut into windows, between its words where that can be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from PIL import Image

__all__ = ["Window", "is_strip", "strip_windows", "tiles"]

Window = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels of the picture."""

# A picture longer than so many times its short side is a strip ...
_STRIP = 4.0
# ... and is cut into this many windows at most, which bounds the time of any strip.
_WINDOWS = 40
# Below this many pixels there is no use in looking where to cut.
_LEAST_REACH = 3


def is_strip(size: tuple[int, int]) -> bool:
    """Whether the text of a picture scaled by its longer side would shrink to nothing."""
    return max(size) > _STRIP * min(size)


def strip_windows(image: Image.Image) -> Iterator[Window]:
    """The windows of a strip, each about twice as long as wide, or longer when it has too many."""
    long, short = max(image.size), min(image.size)
    count = min(_WINDOWS, round(long / (short * _STRIP / 2)))
    wide = image.width > image.height
    return _grid(image, columns=count if wide else 1, rows=1 if wide else count)


def tiles(image: Image.Image, side: int) -> Iterator[Window]:
    """The windows of a picture, row by row, each of about `side` pixels at most."""
    return _grid(image, columns=-(-image.width // side), rows=-(-image.height // side))


def _grid(image: Image.Image, *, columns: int, rows: int) -> Iterator[Window]:
    whole = (0, 0, *image.size)
    for top, bottom in pairwise(_borders(image, whole, rows, down=True)):
        band = (0, top, image.width, bottom)
        for left, right in pairwise(_borders(image, band, columns, down=False)):
            yield (left, top, right, bottom)


def _borders(image: Image.Image, window: Window, count: int, *, down: bool) -> list[int]:
    start, end = (window[1], window[3]) if down else (window[0], window[2])
    nominal = [start + (end - start) * number // count for number in range(1, count)]
    reach = (end - start) // count // 4
    return [start, *(_emptiest(image, window, place, reach, down=down) for place in nominal), end]


def _emptiest(image: Image.Image, window: Window, place: int, reach: int, *, down: bool) -> int:
    """The place within reach where a cut through the window meets least ink."""
    if reach < _LEAST_REACH:
        return place
    left, top, right, bottom = window
    start, end = place - reach, place + reach
    part = image.crop((left, start, right, end) if down else (start, top, end, bottom))
    ink = np.asarray(part.convert("L"), dtype=np.float32).std(axis=1 if down else 0)
    # The middle of a gap between lines or words, rather than the gap between two letters.
    broad = np.convolve(ink, np.ones(max(1, reach // 8)), mode="same")
    edge = reach // 16 + 1
    return start + edge + int(broad[edge:-edge].argmin())
