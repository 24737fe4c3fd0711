"""Found and read lines as PAGE XML, the format of transcription tools. Pure.

The layout is that of http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15: one page a
file, points as whole pixels inside the picture, confidence between 0 and 1, times in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

__all__ = ["NAMESPACE", "has_lines", "page_xml", "xml_text"]

NAMESPACE = "http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_CREATOR = "recipes-orchestration"
# Everything but the characters of XML 1.0, which cannot carry these even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_Point = tuple[int, int]


def has_lines(value: Any) -> bool:
    """Whether a step's value is one of lines on a picture, as `lines` and `read` give."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("lines"), list)
        and all(isinstance(line, dict) for line in value["lines"])
        and all(_is_size(value.get(side)) for side in ("width", "height"))
    )


def xml_text(text: str) -> str:
    """The text without what XML 1.0 cannot carry, such as NUL and most control characters."""
    return _NOT_XML.sub("", text)


def page_xml(image: str, value: Mapping[str, Any], landed_at: datetime) -> bytes:
    """The PAGE XML of one page, in UTF-8, from a value of which `has_lines` is true.

    `image` is the picture's file name, `landed_at` the moment the value landed. Lines without a
    usable polygon or box are left out, as a line must have an outline. One text region holds all
    lines in their order; a page without lines has none.
    """
    size = (int(value["width"]), int(value["height"]))
    root = ET.Element(
        "PcGts",
        {
            "xmlns": NAMESPACE,
            "xmlns:xsi": _XSI,
            "xsi:schemaLocation": f"{NAMESPACE} {NAMESPACE}/pagecontent.xsd",
        },
    )
    metadata = ET.SubElement(root, "Metadata")
    moment = landed_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for tag, text in (("Creator", _CREATOR), ("Created", moment), ("LastChange", moment)):
        ET.SubElement(metadata, tag).text = text
    page = ET.SubElement(
        root,
        "Page",
        {
            "imageFilename": xml_text(image),
            "imageWidth": str(size[0]),
            "imageHeight": str(size[1]),
        },
    )
    drawn = [(outline, line) for line in value["lines"] if (outline := _outline(line, size))]
    if drawn:
        _add_region(page, drawn, size)
    ET.indent(root)
    return ET.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _add_region(
    page: ET.Element, drawn: Sequence[tuple[list[_Point], Mapping[str, Any]]], size: _Point
) -> None:
    order = ET.SubElement(ET.SubElement(page, "ReadingOrder"), "OrderedGroup", {"id": "order"})
    ET.SubElement(order, "RegionRefIndexed", {"index": "0", "regionRef": "region"})
    region = ET.SubElement(page, "TextRegion", {"id": "region"})
    points = [point for outline, _ in drawn for point in outline]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top, bottom = min(y for _, y in points), max(y for _, y in points)
    ET.SubElement(region, "Coords", {"points": _spelled(_corners(left, top, right, bottom))})
    for number, (outline, line) in enumerate(drawn, start=1):
        _add_line(region, f"line{number}", outline, line, size)


def _add_line(
    region: ET.Element, name: str, outline: list[_Point], line: Mapping[str, Any], size: _Point
) -> None:
    element = ET.SubElement(region, "TextLine", {"id": name})
    sure = _confidence(line.get("confidence"))
    text = line.get("text")
    coords = ET.SubElement(element, "Coords", {"points": _spelled(outline)})
    baseline = _points(line.get("baseline"), size)
    if len(baseline) >= 2:
        ET.SubElement(element, "Baseline", {"points": _spelled(baseline)})
    if not isinstance(text, str):
        # Without text the confidence is that of the place.
        coords.attrib.update(sure)
        return
    equivalent = ET.SubElement(element, "TextEquiv", sure)
    ET.SubElement(equivalent, "Unicode").text = xml_text(text)


def _outline(line: Mapping[str, Any], size: _Point) -> list[_Point]:
    polygon = _points(line.get("polygon"), size)
    if len(set(polygon)) >= 3:
        return polygon
    box = line.get("bbox")
    if isinstance(box, list) and len(box) == 4:
        corners = _points([box[:2], box[2:]], size)
        if len(corners) == 2:
            return _corners(*corners[0], *corners[1])
    return []


def _corners(left: int, top: int, right: int, bottom: int) -> list[_Point]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _points(value: Any, size: _Point) -> list[_Point]:
    if not isinstance(value, list):
        return []
    points: list[_Point] = []
    for point in value:
        if not (isinstance(point, list) and len(point) >= 2 and all(map(_is_number, point[:2]))):
            return []
        x, y = (min(max(round(v), 0), side) for v, side in zip(point[:2], size, strict=True))
        points.append((x, y))
    return points


def _spelled(points: Sequence[_Point]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _confidence(value: Any) -> dict[str, str]:
    return {"conf": f"{min(max(float(value), 0.0), 1.0):.4f}"} if _is_number(value) else {}


def _is_number(value: Any) -> bool:
    # Floats too large for JSON come back as infinity, which no pixel has.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31
