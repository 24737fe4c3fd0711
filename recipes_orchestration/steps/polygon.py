"""Four-cornered outlines of lines: from the top left corner clockwise, in pixels. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["Polygon", "is_upright", "polygon_size"]

Polygon = Sequence[Sequence[float]]
"""Four corners (x, y), from the top left one clockwise."""

# Of a line's height over its width, from which its text runs up or down; the engine's own figure.
_UPRIGHT = 1.5


def polygon_size(polygon: Polygon) -> tuple[float, float]:
    """Width and height: the longer of each two opposite sides."""
    top_left, top_right, bottom_right, bottom_left = polygon
    width = max(math.dist(top_left, top_right), math.dist(bottom_left, bottom_right))
    height = max(math.dist(top_left, bottom_left), math.dist(top_right, bottom_right))
    return width, height


def is_upright(polygon: Polygon) -> bool:
    """Whether a line's text runs up or down the page, so that its crop is turned a quarter."""
    width, height = polygon_size(polygon)
    return height >= _UPRIGHT * width
