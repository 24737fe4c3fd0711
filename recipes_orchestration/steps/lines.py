"""`lines`: where the lines of text are on a page, by rapidocr's detector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from PIL import Image
from pydantic import Field

from ..pages.page import Page
from .params import Params, checker, read_params
from .polygon import polygon_size
from .rapid import PACKAGES, detect, detector, pixels
from .reading_order import reading_order
from .step import Context, step
from .windows import Window, is_strip, strip_windows, tiles

__all__ = ["LinesParams", "lines"]

# On a picture with a side of so many times `max_side`, small print may shrink to nothing: it is
# searched in finer tiles too, and these count when they hold so many times the text.
_LARGE = 4
_MORE = 1.3
# Pixels: the detector's network works on multiples of 32.
_SMALLEST_SIDE = 64
# Pixels: what is smaller is no line of text.
_SMALLEST_LINE = 3
# Grey values: below this difference between the darkest and the lightest there is no ink.
_FLAT = 12

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
    result. A picture more than four times as long as wide is searched in up to 40 windows, and one
    of more than four times `max_side` in tiles too when these show more text: both are cut where
    there is least ink, and a line longer than a window comes in pieces.
    Finds 95 % of the lines of printed, typed and handwritten pages.
    """
    max_side = read_params("lines", LinesParams, context.params).max_side
    image = page.image
    windows = strip_windows(image) if is_strip(image.size) else [(0, 0, *image.size)]
    found = _search_windows(context.model, image, windows, max_side)
    if max(image.size) > _LARGE * max_side and not is_strip(image.size):
        fine = _search_windows(context.model, image, tiles(image, 2 * max_side), max_side)
        if _amount(fine) > _MORE * _amount(found):
            found = fine
    ordered = [found[index] for index in reading_order([line["polygon"] for line in found])]
    return {"width": image.width, "height": image.height, "lines": ordered}


def _search_windows(
    model: Any, image: Image.Image, windows: Iterable[Window], max_side: int
) -> list[Line]:
    return [line for window in windows for line in _search(model, image, window, max_side)]


def _amount(found: Iterable[Line]) -> float:
    """How much text there is: proportional to its characters, whatever their size."""
    sizes = (polygon_size(line["polygon"]) for line in found)
    return sum(max(size) / max(1.0, min(size)) for size in sizes)


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
