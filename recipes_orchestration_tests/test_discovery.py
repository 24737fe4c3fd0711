"""Discovery: what the ledger knows of a source follows what lies in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine import probing
from recipes_orchestration.engine.discover import Discovered, data_version, discover
from recipes_orchestration.errors import SourceError
from recipes_orchestration.ledger.database import Ledger, open_ledger
from recipes_orchestration.ledger.page_rows import PageRow
from recipes_orchestration.pages.source import Source

from .page_files import jpeg, pdf_of, tiff_of


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Three folders of three pages each; no two pages are equal."""
    root = tmp_path / "scans"
    for number, folder in enumerate(("a", "a/deep", "b")):
        for page in (1, 2, 10):
            put(root / folder / f"p{page}.jpg", jpeg(number * 20 + page))
    return root


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened, in any order."""
    opened: list[str] = []
    real = probing._probed

    def counted(reader: Any, entry: Any) -> Any:
        opened.append(entry.file)
        return real(reader, entry)

    monkeypatch.setattr(probing, "_probed", counted)
    return opened


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def look(root: Path, ledger: Ledger, **options: Any) -> Discovered:
    return discover(Source("scans", str(root)), ledger, **options)


def rows(ledger: Ledger) -> dict[str, PageRow]:
    return {
        row.page_id: row
        for folder in ledger.pages.folders("scans")
        for row in ledger.pages.rows_of_folder("scans", folder)
    }


def batches(ledger: Ledger) -> dict[str, list[str]]:
    return {
        batch.key: [row.page_id for row in pages]
        for batch, pages in ledger.pages.iter_batches("scans")
    }


def counts(seen: Discovered) -> tuple[int, int, int, int]:
    return seen.new, seen.changed, seen.gone, seen.unchanged


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


@pytest.mark.parametrize("how", ["removed", "unmounted"])
def test_a_source_that_is_not_there_makes_no_page_gone(
    scans: Path, ledger: Ledger, how: str
) -> None:
    first = look(scans, ledger)
    shutil.rmtree(scans)
    if how == "unmounted":
        scans.mkdir()
    for after in (None, "a"):
        with pytest.raises(SourceError, match="is the disk mounted"):
            look(scans, ledger, after=after)
    assert not any(row.gone for row in rows(ledger).values())
    assert first.new == 9


def test_a_source_emptied_on_purpose_can_be_said_so(scans: Path, ledger: Ledger) -> None:
    look(scans, ledger)
    shutil.rmtree(scans)
    put(scans / ".keep", b"")
    assert look(scans, ledger).gone == 9
    (scans / ".keep").unlink()
    assert look(scans, ledger).gone == 0


def test_an_empty_source_has_no_pages(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "empty").mkdir()
    seen = look(tmp_path / "empty", ledger)
    assert counts(seen) == (0, 0, 0, 0)
    assert seen.folders == 1


def test_nothing_below_a_folder_that_cannot_be_listed_is_gone(
    scans: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(scans, ledger)
    real = os.scandir

    def denied(path: bytes) -> Any:
        if path.endswith(b"/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", denied)
    for after in (None, "a"):
        seen = look(scans, ledger, after=after)
        assert seen.gone == 0
        assert [folder for folder, _ in seen.unlisted] == ["a"]
        assert "check its permissions" in seen.unlisted[0][1]
    assert not any(row.gone for row in rows(ledger).values())


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


def test_a_file_that_could_not_be_opened_is_tried_again_each_time(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "scans"
    put(root / "x.jpg", jpeg())
    real = os.open

    def denied(path: Any, *rest: Any, **options: Any) -> int:
        if os.fsencode(path).endswith(b"x.jpg"):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", denied)
        seen = look(root, ledger)
        assert (seen.new, seen.problems) == (1, 1)
        again = look(root, ledger)
        assert (again.changed, again.problems, again.batches) == (0, 1, ())
    mended = look(root, ledger)
    assert (mended.changed, mended.problems, mended.batches) == (1, 0, (":2E/0001",))
    assert rows(ledger)["x.jpg"].problem is None


def test_a_file_that_vanishes_while_it_is_looked_at_is_left_to_the_next_time(
    scans: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = probing._probed

    def slow(reader: Any, entry: Any) -> Any:
        if entry.file == "a/p2.jpg":
            (scans / "a/p2.jpg").unlink()
        return real(reader, entry)

    monkeypatch.setattr(probing, "_probed", slow)
    assert look(scans, ledger).new == 8
    assert "a/p2.jpg" not in rows(ledger)
    assert counts(look(scans, ledger)) == (0, 0, 0, 8)


def test_equal_files_are_pages_of_their_own_with_one_hash(tmp_path: Path, ledger: Ledger) -> None:
    root = tmp_path / "scans"
    for name in ("a/x.jpg", "b/y.jpg"):
        put(root / name, jpeg())
    look(root, ledger)
    assert rows(ledger)["a/x.jpg"].sha256 == rows(ledger)["b/y.jpg"].sha256


def test_with_no_time_it_goes_on_from_its_cursor_until_all_is_seen(
    scans: Path, tmp_path: Path, ledger: Ledger
) -> None:
    after: str | None = None
    ticks: list[Discovered] = []
    while not ticks or after is not None:
        ticks.append(look(scans, ledger, after=after, budget_seconds=0))
        after = ticks[-1].cursor
        assert len(ticks) < 40
    assert len(ticks) >= 4
    assert sum(tick.new for tick in ticks) == 9
    assert sorted(page for pages in batches(ledger).values() for page in pages) == sorted(
        rows(ledger)
    )
    shutil.rmtree(scans / "a/deep")
    (scans / "b/p1.jpg").unlink()
    gone = 0
    after = ""
    while after is not None:
        tick = look(scans, ledger, after=after, budget_seconds=0)
        gone, after = gone + tick.gone, tick.cursor
    assert gone == 4


def test_when_the_time_is_up_a_large_folder_is_left_at_a_whole_batch(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "scans"
    for page in range(40):
        put(root / f"p{page}.jpg", jpeg(page))
    real = probing._probed

    def slow(reader: Any, entry: Any) -> Any:
        time.sleep(0.02)
        return real(reader, entry)

    monkeypatch.setattr(probing, "_probed", slow)
    seen = look(root, ledger, batch_size=10, budget_seconds=0.03)
    assert seen.cursor == ""
    assert 0 < seen.new < 40
    seen = look(root, ledger, batch_size=10, after=seen.cursor)
    assert seen.cursor is None
    assert sorted(page for pages in batches(ledger).values() for page in pages) == sorted(
        f"p{page}.jpg" for page in range(40)
    )


def test_two_discoveries_at_once_cut_no_page_twice(scans: Path, ledger_url: str) -> None:

    def run(_: int) -> None:
        with open_ledger(ledger_url) as ledger:
            look(scans, ledger, batch_size=2)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    with open_ledger(ledger_url) as ledger:
        cut = [page for pages in batches(ledger).values() for page in pages]
        assert sorted(cut) == sorted(rows(ledger))
        assert len(cut) == 9


KILLED = """
import sys
from recipes_orchestration.engine.discover import discover
from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.pages.source import Source
print("ready", flush=True)
with open_ledger(sys.argv[2]) as ledger:
    discover(Source("scans", sys.argv[1]), ledger, batch_size=7)
"""


@pytest.mark.slow
def test_after_kills_at_any_moment_the_next_discovery_puts_all_right(
    tmp_path: Path, ledger_url: str
) -> None:
    root = tmp_path / "scans"
    for folder in range(12):
        for page in range(20):
            put(root / f"f{folder}/p{page}.jpg", jpeg(folder * 20 + page))
        put(root / f"f{folder}/x.pdf", pdf_of([(50, 50 + page) for page in range(9)]))
    with open_ledger(ledger_url):
        pass
    killed = 0
    for moment in (0.0, 0.01, 0.03, 0.05, 0.08, 0.1):
        command = [sys.executable, "-c", KILLED, str(root), ledger_url]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 3
    with open_ledger(ledger_url) as ledger:
        look(root, ledger, batch_size=7)
        assert counts(look(root, ledger, batch_size=7)) == (0, 0, 0, 12 * 21)
        cut = [page for pages in batches(ledger).values() for page in pages]
        assert len(cut) == len(set(cut)) == 12 * 29
        assert all(row.batch and not row.gone for row in rows(ledger).values())


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
    assert data_version([replace(page, stamp="other") for page in pages]) == version
    assert data_version([replace(pages[0], sha256="0" * 64), *pages[1:]]) != version
    gone = replace(pages[0], gone=True)
    assert data_version([gone, *pages[1:]]) == data_version(pages[1:]) != version
