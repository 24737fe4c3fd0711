"""The whole folder of awkward, broken and oddly named files, entry by entry as its table says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from recipes_orchestration.errors import PageUnreadable, SourceError
from recipes_orchestration.pages.decode import decode
from recipes_orchestration.pages.naming import name_to_bytes, natural_key
from recipes_orchestration.pages.probe import ProbedPage, pages_in, unopened
from recipes_orchestration.pages.source import Source

MAKER = Path(__file__).parent.parent.parent / "shared" / "tools" / "make_nasty.py"
REFERENCE = b"formats/plain.jpg"

# What is expected, by how the table's third column begins; the first that fits counts.
BY_WORDS = (
    ("not a page: pass over", "passed over"),
    ("pass over without opening", "passed over"),
    ("do not follow folder links", "passed over"),
    ("documented: passed over, or read by content", "passed over"),
    ("record one error", "held"),
    ("either is fine: read with a warning, or", "held"),
    ("refuse from the header", "held"),
    ("scale down inside a memory bound and read, or refuse", "held"),
    ("a folder: go into it", "folder"),
    ("0 pages, said so", "folder"),
)
BY_PATH = {
    b"hard/huge-20000x20000-1bit.png": "held",
    b"pdf/zero-pages.pdf": "held",
    b"formats/page.heic": "held",
}
PAGES = {
    b"formats/multipage.tif": 3,
    b"pdf/three-scans.pdf": 3,
    b"pdf/startxref-wrong.pdf": 2,
    b"pdf/encrypted-owner-only.pdf": 2,
    b"pdf/rotate-90.pdf": 2,
}
# Read as they are, and for good reason not the same picture as the reference.
OTHER_LOOKS = (
    *(b"formats/cmyk-adobe-inverted.jpg", b"formats/rgb48.tif", b"formats/multipage.tif"),
    *(b"formats/animated.webp", b"broken/ifd-loop.tif"),
)


@dataclass(frozen=True)
class Outcome:
    kind: str
    pages: tuple[ProbedPage, ...] = ()
    reason: str = ""
    images: tuple[Image.Image, ...] = ()


@dataclass(frozen=True)
class Nasty:
    """`expected` is the table, `outcomes` what became of each path that was met."""

    root: Path
    expected: dict[bytes, str]
    outcomes: dict[bytes, Outcome]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Nasty:
    if not MAKER.exists():
        pytest.skip("the maker of the nasty folder lies beside the project only")
    folder = tmp_path_factory.mktemp("nasty")
    base = Image.new("RGB", (850, 1200), "white")
    for line in range(40):
        ImageDraw.Draw(base).rectangle(
            (80, 60 + line * 26, 500 + line * 7, 72 + line * 26), "black"
        )
    base.save(folder / "base.png")
    subprocess.run(
        [sys.executable, MAKER, folder / "base.png", folder / "pages"],
        check=True,
        capture_output=True,
    )
    table = (folder / "pages" / "EXPECT.tsv").read_bytes()
    expected: dict[bytes, str] = {}
    for line in table.rstrip(b"\n").split(b"\n"):
        path, _, should = line.split(b"\t")
        raw = path.decode("unicode_escape").encode("latin-1")
        expected[raw] = expectation(raw, should.decode())
    return Nasty(folder / "pages", expected, outcomes(folder / "pages"))


def expectation(path: bytes, should: str) -> str:
    if path.startswith(b"#"):
        return "note"
    if path == b"broken/no-permission.jpg" and os.geteuid() == 0:
        return "read"
    fits = (kind for words, kind in BY_WORDS if should.startswith(words))
    return BY_PATH.get(path) or next(fits, "read")


def outcomes(root: Path) -> dict[bytes, Outcome]:
    source = Source("nasty", str(root))
    met: dict[bytes, Outcome] = {}
    for listing in source.walk():
        assert listing.problem is None
        met[name_to_bytes(listing.folder)] = Outcome("folder")
        for entry in listing.files:
            if entry.problem:
                met[name_to_bytes(entry.file)] = Outcome(
                    "held", (unopened(entry, entry.problem),), entry.problem
                )
                continue
            try:
                data = source.read(entry.file)
                pages = tuple(pages_in(entry, data))
                reason = pages[0].problem or ""
                images = (
                    () if reason else tuple(decode(data, frame=page.frame or 0) for page in pages)
                )
                outcome = Outcome("held" if reason else "read", pages, reason, images)
            except (PageUnreadable, SourceError) as error:
                outcome = Outcome("held", (unopened(entry, str(error)),), str(error))
            met[name_to_bytes(entry.file)] = outcome
    return met


def paths(nasty: Nasty, kind: str) -> list[bytes]:
    return [path for path, expected in nasty.expected.items() if expected == kind]


def test_the_table_is_the_one_that_is_known(nasty: Nasty) -> None:
    counts = Counter(nasty.expected.values())
    assert sum(counts.values()) >= 150
    assert counts["read"] >= 105
    assert counts["held"] >= 18
    assert counts["passed over"] >= 18
    assert (counts["folder"], counts["note"]) == (2, 2)


def test_every_entry_of_the_table_comes_out_as_it_says(nasty: Nasty) -> None:
    wrong: dict[bytes, tuple[str, str]] = {}
    right: Counter[str] = Counter()
    for path, expected in nasty.expected.items():
        if expected == "note":
            continue
        outcome = nasty.outcomes.get(path, Outcome("passed over"))
        if outcome.kind == expected:
            right[expected] += 1
        else:
            wrong[path] = (expected, f"{outcome.kind}: {outcome.reason}")
    assert wrong == {}
    assert right == Counter(kind for kind in nasty.expected.values() if kind != "note")


def test_nothing_is_met_that_is_not_in_the_table(nasty: Nasty) -> None:
    files = {path for path, outcome in nasty.outcomes.items() if outcome.kind != "folder"}
    assert files - nasty.expected.keys() == set()


def test_every_reason_is_a_sentence_for_a_person(nasty: Nasty) -> None:
    for path in paths(nasty, "held"):
        reason = nasty.outcomes[path].reason
        assert len(reason) > 20, path
        assert reason[0].isupper(), path
        assert reason.endswith("."), path
        assert "\n" not in reason, path


def test_every_page_is_an_upright_8_bit_picture(nasty: Nasty) -> None:
    for path in paths(nasty, "read"):
        outcome = nasty.outcomes[path]
        assert len(outcome.images) == len(outcome.pages) == PAGES.get(path, 1), path
        assert {image.mode for image in outcome.images} <= {"L", "RGB"}, path


def test_what_shows_the_reference_page_looks_like_it(nasty: Nasty) -> None:
    reference = nasty.outcomes[REFERENCE].images[0]
    compared = 0
    for path in paths(nasty, "read"):
        if not path.startswith((b"formats/", b"broken/", b"dupes/a", b"dupes/same")):
            continue
        if path in OTHER_LOOKS:
            continue
        image = nasty.outcomes[path].images[0]
        assert image.size == reference.size, path
        one, other = (np.asarray(each.convert("L"), np.int16) for each in (image, reference))
        # A picture that is turned, negative, all white or all black is over 60 away.
        assert np.abs(one - other).mean() < 10, path
        compared += 1
    assert compared >= 35


def test_equal_bytes_have_equal_hashes_and_pages_of_their_own(nasty: Nasty) -> None:
    same = [b"dupes/a.jpg", b"dupes/b.jpg", b"dupes/sub/a.jpg", b"links/hardlink.jpg", REFERENCE]
    assert len({nasty.outcomes[path].pages[0].sha256 for path in same}) == 1
    assert len({nasty.outcomes[path].pages[0].page_id for path in same}) == len(same)


def test_page_ids_are_valid_unicode_and_lead_back_to_the_bytes(nasty: Nasty) -> None:
    ids = [page.page_id for outcome in nasty.outcomes.values() for page in outcome.pages]
    assert len(ids) == len(set(ids))
    assert all(page_id.encode().decode() == page_id for page_id in ids)
    for path, outcome in nasty.outcomes.items():
        for page in outcome.pages:
            assert name_to_bytes(page.file) == path


def test_names_are_in_natural_order_and_case_keeps_them_apart(nasty: Nasty) -> None:
    listing = next(
        listing for listing in Source("x", str(nasty.root)).walk() if listing.folder == "names"
    )
    names = [entry.file.removeprefix("names/") for entry in listing.files]
    assert names == sorted(names, key=natural_key)
    assert [name for name in names if name[4:-4] in {"1", "2", "10"}] == [
        *("page1.jpg", "page2.jpg", "page10.jpg")
    ]
    assert {"case.jpg", "Case.jpg", "CASE.JPG"} <= set(names)


def test_among_litter_there_is_one_page(nasty: Nasty) -> None:
    found = [path for path in nasty.outcomes if path.startswith(b"litter/")]
    assert found == [b"litter/page.jpg"]
