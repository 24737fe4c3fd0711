"""A line of text cut out of its page and turned level."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from .polygon import Polygon, is_upright, polygon_size
from .rapid import Pixels, pixels

__all__ = ["MAX_CROP_RATIO", "crop"]

MAX_CROP_RATIO = 80
"""Width over height; a longer line is squeezed, which bounds the memory of reading it."""

# Pixels around a line that the interpolation looks at.
_MARGIN = 2


def crop(image: Image.Image, polygon: Polygon) -> Pixels:
    """The four-cornered part of a picture, turned level; an upright line is turned to the left."""
    import cv2

    width, height = (max(1, int(side)) for side in polygon_size(polygon))
    # Only the surroundings become an array: a whole page of 150 million pixels is large enough
    # without a copy.
    left, top, right, bottom = _surroundings(polygon, image.size)
    corners = np.array([(x - left, y - top) for x, y in polygon], dtype=np.float32)
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    cut = cv2.warpPerspective(
        pixels(image.crop((left, top, right, bottom))),
        cv2.getPerspectiveTransform(corners, target),
        (width, height),
        borderMode=cv2.BORDER_REPLICATE,
        flags=cv2.INTER_CUBIC,
    )
    if is_upright(polygon):
        cut = np.rot90(cut)
    longest = cut.shape[0] * MAX_CROP_RATIO
    if cut.shape[1] > longest:
        cut = cv2.resize(cut, (longest, cut.shape[0]), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(cut, dtype=np.uint8)


def _surroundings(polygon: Polygon, size: tuple[int, int]) -> tuple[int, int, int, int]:
    xs, ys = [x for x, _ in polygon], [y for _, y in polygon]
    return (
        max(0, math.floor(min(xs)) - _MARGIN),
        max(0, math.floor(min(ys)) - _MARGIN),
        min(size[0], math.ceil(max(xs)) + 1 + _MARGIN),
        min(size[1], math.ceil(max(ys)) + 1 + _MARGIN),
    )
