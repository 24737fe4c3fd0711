"""The order in which a person reads the lines of a page. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .polygon import Polygon, is_upright, polygon_size

__all__ = ["reading_order"]

# A gutter parts two columns where each has this many lines ...
_COLUMN_LINES = 4
# ... is at least this share of the block's width ...
_COLUMN_WIDTH = 0.2
# ... and is filled to this share by its median line, as running text does and table cells do not.
_COLUMN_FILL = 0.55
# A side of a gutter may hold several columns: each has this share of the block's width at least,
# and they have this share of the side's lines.
_NARROWEST = 0.1
_MOST = 0.8
# Places across a block at which a gutter is sought, and how often a column may be cut again.
_PLACES = 200
_DEPTH = 6
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


@dataclass(frozen=True)
class _Band:
    """A part of a block from side to side, with its two columns if it has any."""

    boxes: list[_Box]
    columns: list[list[_Box]]


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
    bands = _best_bands(boxes) if depth > 0 and len(boxes) >= 2 * _COLUMN_LINES else []
    if not any(band.columns for band in bands):
        return _rows(boxes)
    ordered: list[_Box] = []
    for band in bands:
        for column in band.columns or [band.boxes]:
            ordered += _ordered(column, depth - 1)
    return ordered


def _best_bands(boxes: list[_Box]) -> list[_Band]:
    """The block cut by the gutter that puts most lines into columns."""
    start, end = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
    width = end - start
    by_height = sorted(boxes, key=lambda box: (box.middle, box.x0))
    best: tuple[int, list[_Band]] = (0, [])
    for place in range(1, _PLACES):
        share = place / _PLACES
        if _COLUMN_WIDTH <= share <= 1 - _COLUMN_WIDTH:
            bands = _bands(by_height, start + share * width, width)
            placed = sum(len(column) for band in bands for column in band.columns)
            if placed > best[0]:
                best = (placed, bands)
    return best[1]


def _bands(by_height: list[_Box], gutter: float, width: float) -> list[_Band]:
    """Bands from top to bottom; each line that runs across the gutter ends the columns above it."""
    bands: list[_Band] = []
    plain: list[_Box] = []
    between: list[_Box] = []
    for box in (*by_height, None):
        if box is not None and not box.x0 < gutter < box.x1:
            between.append(box)
            continue
        columns = [
            [other for other in between if other.x1 <= gutter],
            [other for other in between if other.x0 >= gutter],
        ]
        if all(_is_column(column, width) for column in columns):
            bands += [_Band(plain, []), _Band(between, columns)]
            plain = []
        else:
            plain += between
        between = []
        if box is not None:
            plain.append(box)
    return [band for band in (*bands, _Band(plain, [])) if band.boxes]


def _is_column(boxes: list[_Box], width: float) -> bool:
    """Whether running text fills this side of a gutter, in one column or in several."""
    if len(boxes) < _COLUMN_LINES:
        return False
    if _is_filled(boxes, _COLUMN_WIDTH * width):
        return True
    filled = [group for group in _apart(boxes) if _is_filled(group, _NARROWEST * width)]
    return len(filled) > 1 and sum(map(len, filled)) >= _MOST * len(boxes)


def _is_filled(boxes: list[_Box], least: float) -> bool:
    own = max(box.x1 for box in boxes) - min(box.x0 for box in boxes)
    typical = median(box.x1 - box.x0 for box in boxes)
    return len(boxes) >= _COLUMN_LINES and own >= least and typical >= _COLUMN_FILL * own


def _apart(boxes: list[_Box]) -> list[list[_Box]]:
    """Groups between which runs white space from top to bottom."""
    groups: list[list[_Box]] = []
    end = -math.inf
    for box in sorted(boxes, key=lambda box: box.x0):
        if box.x0 >= end:
            groups.append([])
        groups[-1].append(box)
        end = max(end, box.x1)
    return groups


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
