"""The order in which a person reads the lines of a page. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from .polygon import Polygon, is_upright, polygon_size

__all__ = ["reading_order"]

# A gutter parts two columns when each has this many lines ...
_COLUMN_LINES = 4
# ... is at least this share of the block's width ...
_COLUMN_WIDTH = 0.2
# ... is filled to this share by its median line, as running text does and table cells do not ...
_COLUMN_FILL = 0.55
# ... and when at most this share of the block's lines, such as headings, run across the gutter.
_ACROSS = 0.15
_DEPTH = 3
# Width over height from which a line tells the page's slope, and the radians it may slope.
_LONG = 4.0
_STEEPEST = math.radians(20)


@dataclass(frozen=True)
class _Box:
    index: int
    x0: float
    x1: float
    y0: float
    y1: float

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2

    @property
    def height(self) -> float:
        return self.y1 - self.y0


def reading_order(polygons: Sequence[Polygon]) -> list[int]:
    """The places of the lines in the order of reading.

    Rows from top to bottom, each from left to right, after turning the page level by its median
    line; a column, or the left page of a spread, comes whole before the one to the right of it.
    When most lines stand upright, the page lies on its side: they are read as if it were turned
    a quarter to the left.
    """
    if not polygons:
        return []
    upright = sum(is_upright(polygon) for polygon in polygons) * 2 > len(polygons)
    turned = [_turn(polygon) if upright else polygon for polygon in polygons]
    slope = _slope(turned)
    boxes = [_level(index, polygon, slope) for index, polygon in enumerate(turned)]
    return [box.index for box in _ordered(boxes, _DEPTH)]


def _turn(polygon: Polygon) -> Polygon:
    """A quarter to the left; the corner that becomes the top left one comes first."""
    return [(y, -x) for x, y in (*polygon[1:], polygon[0])]


def _slope(polygons: Sequence[Polygon]) -> float:
    """The median angle of the long lines, in radians; 0 when they are few or it is steep."""
    angles: list[float] = []
    for polygon in polygons:
        width, height = polygon_size(polygon)
        if width > _LONG * height:
            (ax, ay), (bx, by) = polygon[:2]
            angles.append(math.atan2(by - ay, bx - ax))
    angle = median(angles) if len(angles) >= _COLUMN_LINES else 0.0
    return angle if abs(angle) < _STEEPEST else 0.0


def _level(index: int, polygon: Polygon, slope: float) -> _Box:
    sine, cosine = math.sin(-slope), math.cos(-slope)
    xs = [x * cosine - y * sine for x, y in polygon]
    ys = [x * sine + y * cosine for x, y in polygon]
    return _Box(index, min(xs), max(xs), min(ys), max(ys))


def _ordered(boxes: list[_Box], depth: int) -> list[_Box]:
    gutter = _gutter(boxes) if depth > 0 and len(boxes) >= 2 * _COLUMN_LINES else None
    if gutter is None:
        return _rows(boxes)
    across = _rows([box for box in boxes if box.x0 < gutter < box.x1])
    left = [box for box in boxes if box.x1 <= gutter]
    right = [box for box in boxes if box.x0 >= gutter]
    ordered: list[_Box] = []
    # Each line across ends the columns above it.
    for heading in across:
        for side in (left, right):
            above = [box for box in side if box.middle < heading.middle]
            ordered += _ordered(above, depth - 1)
            side[:] = [box for box in side if box.middle >= heading.middle]
        ordered.append(heading)
    return ordered + _ordered(left, depth - 1) + _ordered(right, depth - 1)


def _gutter(boxes: list[_Box]) -> float | None:
    """Where the block is best cut from top to bottom, or None when it is one column."""
    start, end = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
    width = end - start
    edges = sorted({box.x1 for box in boxes} | {box.x0 for box in boxes})
    best: tuple[int, float, float] | None = None
    for x0, x1 in pairwise(edges):
        x = (x0 + x1) / 2
        if not start + _COLUMN_WIDTH * width <= x <= end - _COLUMN_WIDTH * width:
            continue
        across = sum(box.x0 < x < box.x1 for box in boxes)
        if across > _ACROSS * len(boxes):
            continue
        if not (
            _is_column([box for box in boxes if box.x1 <= x], width)
            and _is_column([box for box in boxes if box.x0 >= x], width)
        ):
            continue
        candidate = (across, x0 - x1, x)
        if best is None or candidate < best:
            best = candidate
    return None if best is None else best[2]


def _is_column(boxes: list[_Box], width: float) -> bool:
    if len(boxes) < _COLUMN_LINES:
        return False
    own = max(box.x1 for box in boxes) - min(box.x0 for box in boxes)
    filled = median(box.x1 - box.x0 for box in boxes)
    return own >= _COLUMN_WIDTH * width and filled >= _COLUMN_FILL * own


def _rows(boxes: list[_Box]) -> list[_Box]:
    rows: list[list[_Box]] = []
    for box in sorted(boxes, key=lambda box: (box.middle, box.x0)):
        row = rows[-1] if rows else None
        # Lines side by side overlap by half the lower one; one below another does not.
        if row is not None and abs(box.middle - row[0].middle) < 0.5 * min(
            box.height, row[0].height
        ):
            row.append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row, key=lambda box: box.x0)]
