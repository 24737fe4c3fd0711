"""PAGE XML of read and found lines is well-formed, whatever was read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.library.export import Exported, export
from recipes_orchestration.library.page_xml import NAMESPACE, has_lines, page_xml, xml_text

from .landed_results import NOON, RECIPE, all_files, batch_of, landed, lines_value


def element(root: ET.Element, path: str) -> ET.Element:
    found = root.find(path, {"": NAMESPACE})
    assert found is not None, path
    return found


def test_page_xml_has_the_structure_of_the_2019_schema() -> None:
    data = page_xml("p.pdf#0003", lines_value('a <&> "ü"'), NOON)
    root = ET.fromstring(data)
    assert root.tag == f"{{{NAMESPACE}}}PcGts"
    assert [child.tag.rpartition("}")[2] for child in root] == ["Metadata", "Page"]
    assert element(root, "Metadata/Created").text == "2026-03-01T12:00:00Z"
    page = element(root, "Page")
    assert page.attrib == {"imageFilename": "p.pdf#0003", "imageWidth": "1000",
                           "imageHeight": "1500"}  # fmt: skip
    region = element(page, "TextRegion")
    assert element(page, "ReadingOrder/OrderedGroup/RegionRefIndexed").attrib == {
        "index": "0",
        "regionRef": region.attrib["id"],
    }
    assert element(region, "Coords").attrib["points"] == "0,21 500,21 500,1500 0,1500"
    lines = region.findall("TextLine", {"": NAMESPACE})
    assert len(lines) == 2
    assert [child.tag.rpartition("}")[2] for child in lines[0]] == [
        "Coords",
        "Baseline",
        "TextEquiv",
    ]
    assert element(lines[0], "Coords").attrib["points"] == "10,21 500,22 499,60 0,1500"
    assert element(lines[0], "Baseline").attrib["points"] == "10,55 500,56"
    assert element(lines[0], "TextEquiv").attrib == {"conf": "0.9877"}
    assert element(lines[0], "TextEquiv/Unicode").text == 'a <&> "ü"'
    assert element(lines[1], "Coords").attrib["points"] == "10,80 500,80 500,120 10,120"
    assert element(lines[1], "TextEquiv").attrib == {"conf": "1.0000"}
    ids = [each.attrib["id"] for each in root.iter() if "id" in each.attrib]
    assert len(ids) == len(set(ids)) == 4


def test_found_lines_without_text_carry_their_confidence_on_their_place() -> None:
    value = {"width": 100, "height": 50, "lines": [{"bbox": [1, 2, 30, 9], "confidence": 0.5}]}
    line = element(ET.fromstring(page_xml("p.jpg", value, NOON)), "Page/TextRegion/TextLine")
    assert element(line, "Coords").attrib == {"points": "1,2 30,2 30,9 1,9", "conf": "0.5000"}
    assert len(line) == 1


def test_a_page_without_lines_is_a_page_without_a_region() -> None:
    root = ET.fromstring(page_xml("p.jpg", {"width": 10, "height": 20, "lines": []}, NOON))
    assert len(element(root, "Page")) == 0


@given(st.text(), st.text())
def test_page_xml_is_well_formed_whatever_the_text(image: str, text: str) -> None:
    root = ET.fromstring(page_xml(image, lines_value(text), NOON))
    kept = element(root, "Page/TextRegion/TextLine/TextEquiv/Unicode").text or ""
    # XML gives any line end back as a newline.
    assert kept == xml_text(text).replace("\r\n", "\n").replace("\r", "\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "bbox", "polygon", "confidence", "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON, JSON, st.lists(JSON, max_size=3))
def test_any_value_from_outside_makes_page_xml_or_is_refused(
    width: Any, height: Any, lines: list[Any]
) -> None:
    value = {"width": width, "height": height, "lines": lines}
    if has_lines(value):
        for coords in ET.fromstring(page_xml("p", value, NOON)).iter(f"{{{NAMESPACE}}}Coords"):
            assert re.fullmatch(r"([0-9]+,[0-9]+ )+[0-9]+,[0-9]+", coords.attrib["points"])


def test_page_xml_takes_read_lines_before_found_ones_and_counts_the_rest(tmp_path: Path) -> None:
    found = {"width": 100, "height": 50, "lines": [{"bbox": [1, 2, 30, 9]}]}
    library = landed(tmp_path, "lines", {"p.jpg": found, "q.jpg": found})
    landed(tmp_path, "read", {"p.jpg": lines_value("hello")})
    landed(tmp_path, "embed", {"p.jpg": {"vector": []}, "r.jpg": {"vector": []}})
    out = tmp_path / "out"
    pages = ["p.jpg", "q.jpg", "r.jpg", "s.jpg"]
    steps = ["lines", "read", "embed"]
    done = export(library, RECIPE, [batch_of(pages)], steps, "page-xml", str(out))
    assert done == Exported(str(out), pages=4, written=2, missing=1, unfit=1)
    files = all_files(out)
    assert b"hello" in files["p.jpg.xml"]
    assert b"TextEquiv" not in files["q.jpg.xml"]
