"""Discovery: what the ledger knows of a source follows what lies in it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from recipes_orchestration.engine.discover import data_version
from recipes_orchestration.ledger.database import Ledger

from .discovery_scans import batches, counts, look, put, rows
from .page_files import jpeg, pdf_of, tiff_of


def test_new_pages_are_cut_into_batches_of_their_folder(scans: Path, ledger: Ledger) -> None:
    seen = look(scans, ledger, batch_size=2)
    assert counts(seen) == (9, 0, 0, 0)
    assert (seen.folders, seen.files, seen.cursor) == (4, 9, None)
    assert batches(ledger) == {
        "a/0001": ["a/p1.jpg", "a/p2.jpg"],
        "a/0002": ["a/p10.jpg"],
        "a/deep/0001": ["a/deep/p1.jpg", "a/deep/p2.jpg"],
        "a/deep/0002": ["a/deep/p10.jpg"],
        "b/0001": ["b/p1.jpg", "b/p2.jpg"],
        "b/0002": ["b/p10.jpg"],
    }
    assert list(seen.batches) == list(batches(ledger))
    page = rows(ledger)["a/p1.jpg"]
    assert page.sha256 == hashlib.sha256((scans / "a/p1.jpg").read_bytes()).hexdigest()
    assert page.size == (scans / "a/p1.jpg").stat().st_size


def test_unchanged_files_are_never_opened(scans: Path, ledger: Ledger, reads: list[str]) -> None:
    look(scans, ledger)
    assert len(reads) == 9
    before = rows(ledger)
    reads.clear()
    seen = look(scans, ledger)
    assert reads == []
    assert counts(seen) == (0, 0, 0, 9)
    assert seen.batches == ()
    assert rows(ledger) == before


def test_a_changed_page_changes_only_its_own_row(scans: Path, ledger: Ledger) -> None:
    look(scans, ledger)
    before = rows(ledger)
    put(scans / "a/p2.jpg", jpeg(99))
    seen = look(scans, ledger)
    assert counts(seen) == (0, 1, 0, 8)
    assert seen.batches == ("a/0001",)
    after = rows(ledger)
    changed = {name for name, row in after.items() if row != before[name]}
    assert changed == {"a/p2.jpg"}
    assert after["a/p2.jpg"].sha256 == hashlib.sha256(jpeg(99)).hexdigest()
    assert after["a/p2.jpg"].position == before["a/p2.jpg"].position


def test_a_touched_page_is_read_once_and_is_no_change(
    scans: Path, ledger: Ledger, reads: list[str]
) -> None:
    look(scans, ledger)
    os.utime(scans / "b/p1.jpg", ns=(1, 1))
    reads.clear()
    seen = look(scans, ledger)
    assert reads == ["b/p1.jpg"]
    assert (seen.changed, seen.batches) == (0, ())
    look(scans, ledger)
    assert reads == ["b/p1.jpg"]


def test_later_pages_make_new_batches_and_no_batch_is_topped_up(
    scans: Path, ledger: Ledger
) -> None:
    look(scans, ledger, batch_size=2)
    before = batches(ledger)
    for page in (0, 3, 11):
        put(scans / f"a/p{page}.jpg", jpeg(60 + page))
    seen = look(scans, ledger, batch_size=2)
    assert seen.batches == ("a/0003", "a/0004")
    assert batches(ledger) == {
        **before,
        "a/0003": ["a/p0.jpg", "a/p3.jpg"],
        "a/0004": ["a/p11.jpg"],
    }


def test_a_page_that_is_gone_keeps_its_place_and_comes_back_to_it(
    scans: Path, ledger: Ledger
) -> None:
    look(scans, ledger)
    data = (scans / "a/p1.jpg").read_bytes()
    (scans / "a/p1.jpg").unlink()
    seen = look(scans, ledger)
    assert (seen.gone, seen.batches) == (1, ("a/0001",))
    assert rows(ledger)["a/p1.jpg"].gone
    assert look(scans, ledger).gone == 0
    put(scans / "a/p1.jpg", data)
    seen = look(scans, ledger)
    assert (seen.new, seen.changed, seen.batches) == (0, 1, ("a/0001",))
    row = rows(ledger)["a/p1.jpg"]
    assert (row.gone, row.batch, row.position) == (False, "a/0001", 0)


def test_a_folder_that_is_gone_takes_only_its_own_pages(scans: Path, ledger: Ledger) -> None:
    look(scans, ledger)
    shutil.rmtree(scans / "a" / "deep")
    seen = look(scans, ledger)
    assert (seen.gone, seen.batches) == (3, ("a/deep/0001",))
    assert {name for name, row in rows(ledger).items() if row.gone} == {
        *("a/deep/p1.jpg", "a/deep/p2.jpg", "a/deep/p10.jpg")
    }


def test_the_last_folder_and_a_renamed_one_are_noticed(scans: Path, ledger: Ledger) -> None:
    look(scans, ledger)
    (scans / "b").rename(scans / "0")
    seen = look(scans, ledger)
    assert (seen.new, seen.gone) == (3, 3)
    assert seen.batches == ("0/0001", "b/0001")


def test_an_empty_source_has_no_pages(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "empty").mkdir()
    seen = look(tmp_path / "empty", ledger)
    assert counts(seen) == (0, 0, 0, 0)
    assert seen.folders == 1


def test_a_file_of_several_pages_grows_and_shrinks(tmp_path: Path, ledger: Ledger) -> None:
    root = tmp_path / "scans"
    put(root / "x.tif", tiff_of(3))
    assert look(root, ledger).new == 3
    assert batches(ledger) == {":2E/0001": ["x.tif#0001", "x.tif#0002", "x.tif#0003"]}
    put(root / "x.tif", tiff_of(5))
    seen = look(root, ledger)
    assert (seen.new, seen.changed, seen.gone) == (2, 3, 0)
    assert batches(ledger)[":2E/0002"] == ["x.tif#0004", "x.tif#0005"]
    put(root / "x.tif", tiff_of(2))
    seen = look(root, ledger)
    assert (seen.new, seen.changed, seen.gone) == (0, 2, 3)
    put(root / "x.tif", tiff_of(1))
    seen = look(root, ledger)
    assert (seen.new, seen.gone) == (1, 2)
    assert [name for name, row in rows(ledger).items() if not row.gone] == ["x.tif"]
    shas = {row.sha256 for row in rows(ledger).values()}
    assert len(shas) == 6


def test_a_broken_file_is_one_page_with_its_reason_until_it_is_mended(
    tmp_path: Path, ledger: Ledger
) -> None:
    root = tmp_path / "scans"
    put(root / "x.pdf", b"")
    put(root / "good.jpg", jpeg())
    seen = look(root, ledger)
    assert (seen.new, seen.problems) == (2, 1)
    assert "0 bytes" in (rows(ledger)["x.pdf"].problem or "")
    assert (look(root, ledger).problems, look(root, ledger).batches) == (0, ())
    put(root / "x.pdf", pdf_of([(100, 100), (100, 100)]))
    seen = look(root, ledger)
    assert (seen.new, seen.gone, seen.problems) == (2, 1, 0)
    assert {name for name, row in rows(ledger).items() if not row.gone} == {
        *("good.jpg", "x.pdf#0001", "x.pdf#0002")
    }


def test_equal_files_are_pages_of_their_own_with_one_hash(tmp_path: Path, ledger: Ledger) -> None:
    root = tmp_path / "scans"
    for name in ("a/x.jpg", "b/y.jpg"):
        put(root / name, jpeg())
    look(root, ledger)
    assert rows(ledger)["a/x.jpg"].sha256 == rows(ledger)["b/y.jpg"].sha256


def test_progress_is_told_folder_by_folder(scans: Path, ledger: Ledger) -> None:
    told: list[tuple[str, int]] = []
    look(scans, ledger, on_folder=lambda folder, files: told.append((folder, files)))
    assert told == [(".", 0), ("a", 3), ("a/deep", 3), ("b", 3)]


def test_a_data_version_is_of_the_pages_that_are_there(scans: Path, ledger: Ledger) -> None:
    look(scans, ledger)
    pages = ledger.pages.in_batch("scans", "a/0001")
    version = data_version(pages)
    assert len(version) == 32
    assert data_version(reversed(pages)) == version
    assert data_version([page._replace(file="other") for page in pages]) == version
    assert data_version([pages[0]._replace(sha256="0" * 64), *pages[1:]]) != version
    gone = pages[0]._replace(gone=True)
    assert data_version([gone, *pages[1:]]) == data_version(pages[1:]) != version
