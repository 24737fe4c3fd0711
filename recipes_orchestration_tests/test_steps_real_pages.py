from __future__ import annotations

import os
from pathlib import Path

import pytest

from .drawn_pages import page_of, read_page
from .test_read_quality import read_quality

PAGES = Path(
    os.environ.get("RECIPES_REAL_PAGES")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PAGES.is_dir(),
        reason=f"there are no real pages at {PAGES}; RECIPES_REAL_PAGES names their folder",
    ),
]


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("old-books-en/boy-apprenticed-1920/c015.tif", 1),
        ("misc-print/tesseract-test/phototest-rotated-R.png", 1),
        ("misc-print/tesseract-test/phototest-rotated-180.png", 1),
        ("misc-print/ocrmypdf/linn.png", 2),  # two columns below full lines
        ("misc-print/ocrmypdf/skew.pdf", 2),
        ("stanford-memorials-1905/letters-042-076/Lettre42.jpg", 4),  # typed
        ("kant-aufklaerung-1784/pages/kant_0020.tif", 10),  # Fraktur
    ],
)
def test_real_pages_are_read_with_few_wrong_characters(name: str, percent: float) -> None:
    path = PAGES / name
    truth = path.with_name(path.name.removesuffix(path.suffix) + ".gt.txt").read_text("utf-8")
    frame = 0 if path.suffix == ".pdf" else None
    read = read_page(page_of(path.read_bytes(), file=name, frame=frame))["text"]
    true = read_quality.tidy(truth)
    wrong = read_quality.distance(true, read_quality.tidy(read))
    assert 100 * wrong / len(true) <= percent
