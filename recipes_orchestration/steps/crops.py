"""A line of text cut out of its page and turned level."""

from __future__ import annotations

import numpy as np

from .polygon import Polygon, is_upright, polygon_size
from .rapid import Pixels

__all__ = ["MAX_CROP_RATIO", "crop"]

MAX_CROP_RATIO = 80
"""Width over height; a longer line is squeezed, which bounds the memory of reading it."""


def crop(picture: Pixels, polygon: Polygon) -> Pixels:
    """The four-cornered part of a picture, turned level; an upright line is turned to the left."""
    import cv2

    width, height = (max(1, int(side)) for side in polygon_size(polygon))
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    matrix = cv2.getPerspectiveTransform(np.array(polygon, dtype=np.float32), target)
    cut = cv2.warpPerspective(
        picture,
        matrix,
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
