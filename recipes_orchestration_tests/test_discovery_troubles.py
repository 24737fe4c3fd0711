"""Discovery when time is short, the disk is away, files move, or it is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine import probing
from recipes_orchestration.engine.discover import Discovered
from recipes_orchestration.errors import SourceError
from recipes_orchestration.ledger.database import Ledger, open_ledger

from .discovery_scans import batches, counts, look, put, rows
from .page_files import jpeg, pdf_of


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
