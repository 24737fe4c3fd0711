"""Writers and mergers that die at any moment lose nothing that had landed, and show no halves."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq
import pytest

from recipes_orchestration.errors import LibraryError
from recipes_orchestration.library import Library, Result, store_local
from recipes_orchestration.library.store_local import LocalStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BATCH = "f/0001"
FOLDER = "r/s/f/0001"

WRITER = """
import sys
from datetime import UTC, datetime
from recipes_orchestration.library import Library, Result
library = Library(sys.argv[1])
start = int(sys.argv[2])
for part in range(start, start + 100000):
    rows = [Result(f"p{part}-{n}", "k", [part, "x" * 20000], 0.1, "t", datetime.now(UTC))
            for n in range(20)]
    library.land("r", "s", "f/0001", "t", part, rows)
    print(part, flush=True)
    if len(sys.argv) > 3 and part % 5 == 4:
        library.compact("r", "s", "f/0001")
"""


def rows(part: int, count: int = 5, **other: Any) -> list[Result]:
    return [
        Result(f"p{part}-{n}", "k", {"part": part}, 0.1, other.get("task", "t"), NOON)
        for n in range(count)
    ]


def writer(root: Path, start: int, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(root), str(start), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def kill_after_first_landing(process: subprocess.Popen[bytes], seconds: float) -> list[int]:
    """The parts that the process had said were landed when it was killed."""
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    return [int(line) for line in (first + rest).split(b"\n") if line]


@pytest.mark.slow
@pytest.mark.parametrize("merging", [False, True])
def test_a_writer_killed_at_random_moments_shows_no_half_file_and_loses_nothing(
    tmp_path: Path, merging: bool
) -> None:
    moments = random.Random(4)
    said: list[int] = []
    for attempt in range(8):
        process = writer(tmp_path, attempt * 100_000, *(["merge"] if merging else []))
        said += kill_after_first_landing(process, moments.uniform(0, 0.15))
        for path in (tmp_path / FOLDER).iterdir():
            if not path.name.startswith("."):
                assert pq.ParquetFile(path).read().num_rows >= 20
    landed = Library(str(tmp_path)).landed("r", "s", BATCH)
    assert {(f"p{part}-{n}", "k") for part in said for n in range(20)} <= landed
    # A part lands whole or not at all, so at most the one that each kill interrupted is extra.
    assert len(landed) % 20 == 0
    assert len(landed) <= 20 * (len(said) + 8)


@pytest.mark.slow
def enough(pairs: set[tuple[str, str]]) -> bool:
    """Whether each of the two writers has landed more than six parts."""
    parts = {int(page.split("-")[0].removeprefix("p") or -1) for page, _ in pairs}
    first = sum(0 <= part < 500_000 for part in parts)
    return first > 6 and sum(part >= 500_000 for part in parts) > 6


def test_reading_while_others_land_and_merge_never_misses_what_had_landed(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    library.land("r", "s", BATCH, "first", None, rows(-1))
    processes = [writer(tmp_path, start, "merge") for start in (0, 500_000)]
    try:
        known: set[tuple[str, str]] = set()
        started = time.monotonic()
        reads = 0
        # On a busy machine the writers need longer to land enough.
        while time.monotonic() - started < (6 if enough(known) else 120):
            now = library.landed("r", "s", BATCH).pairs
            assert known <= now
            known, reads = now, reads + 1
    finally:
        said = [kill_after_first_landing(process, 0) for process in processes]
    assert reads > 20
    assert all(len(parts) > 5 for parts in said), said
    library.compact("r", "s", BATCH)
    whole = library.landed("r", "s", BATCH)
    expected = {(f"p{part}-{n}", "k") for parts in said for part in parts for n in range(20)}
    assert expected | known <= whole


class Died(BaseException):
    """Stands for the end of the process: nothing of the program catches it."""


class DyingStore:
    """A store whose process ends before its n-th act of writing or removing one file."""

    def __init__(self, store: LocalStore, acts: int) -> None:
        self._store, self._acts, self.root = store, acts, store.root

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _act(self) -> None:
        if self._acts == 0:
            raise Died
        self._acts -= 1

    def put(self, folder: str, name: str, write: Callable[[IO[bytes]], None]) -> None:
        self._act()

        def dying(stream: IO[bytes]) -> None:
            write(stream)
            self._act()

        self._store.put(folder, name, dying)
        self._act()

    def remove(self, folder: str, names: Sequence[str]) -> None:
        for name in names:
            self._act()
            self._store.remove(folder, [name])


def test_a_merge_that_dies_before_any_of_its_acts_reads_the_same(tmp_path: Path) -> None:
    source = Library(str(tmp_path / "source"))
    for part in range(5):
        source.land("r", "s", BATCH, "t", part, [*rows(part), *rows(0, task="u")])
    before = source.table("r", "s", BATCH)
    deaths = 0
    for acts in range(12):
        root = tmp_path / f"copy{acts}"
        shutil.copytree(tmp_path / "source", root)
        library: Any = Library(str(root))
        library._store = DyingStore(library._store, acts)
        try:
            library.compact("r", "s", BATCH)
        except Died:
            deaths += 1
        again = Library(str(root))
        assert again.table("r", "s", BATCH).equals(before), acts
        again.compact("r", "s", BATCH)
        assert again.table("r", "s", BATCH).equals(before), acts
        assert len(again._store.names(FOLDER)) == 1
    assert deaths == 8  # before, in and after the write, and before each of five removals


def _merge_forever(root: str) -> None:
    while True:
        Library(root).compact("r", "s", BATCH)


@pytest.mark.slow
def test_a_merge_killed_at_random_moments_reads_the_same(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    context = multiprocessing.get_context("spawn")
    moments = random.Random(5)
    landed = 0
    expected: set[tuple[str, str]] = set()
    for _ in range(6):
        process = context.Process(target=_merge_forever, args=(str(tmp_path),), daemon=True)
        process.start()
        end = time.monotonic() + moments.uniform(1.0, 1.6)
        while time.monotonic() < end:
            library.land("r", "s", BATCH, "t", landed, rows(landed))
            landed += 1
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        expected = {(f"p{part}-{n}", "k") for part in range(landed) for n in range(5)}
        assert library.landed("r", "s", BATCH) == expected
    library.compact("r", "s", BATCH)
    assert library.landed("r", "s", BATCH) == expected


def test_what_lands_while_a_merge_runs_stays(tmp_path: Path) -> None:
    library: Any = Library(str(tmp_path))
    for part in range(3):
        library.land("r", "s", BATCH, "t", part, rows(part))
    inner: LocalStore = library._store

    class Interrupted(DyingStore):
        def files(
            self, folder: str, names: Mapping[str, int]
        ) -> Iterator[tuple[str, pq.ParquetFile]]:
            # Once the merge has its listing, another process lands and lands one again.
            Library(str(tmp_path)).land("r", "s", BATCH, "t", 9, rows(9))
            Library(str(tmp_path)).land("r", "s", BATCH, "t", 1, rows(1))
            Library(str(tmp_path)).land("r", "s", BATCH, "t", 1, rows(77))
            return inner.files(folder, names)

    library._store = Interrupted(inner, 1000)
    library.compact("r", "s", BATCH)
    pages = {page for page, _ in Library(str(tmp_path)).landed("r", "s", BATCH)}
    assert pages == {f"p{part}-{n}" for part in (0, 1, 2, 9, 77) for n in range(5)}
    assert len(inner.names(FOLDER)) == 3  # the whole one and the two that came meanwhile


def test_old_litter_of_dead_writers_is_swept_and_young_is_left(tmp_path: Path) -> None:
    library = Library(str(tmp_path))
    library.land("r", "s", BATCH, "t", 0, rows(0))
    folder = tmp_path / FOLDER
    for act in (
        lambda: library.compact("r", "s", BATCH),
        lambda: library.land("r", "s", BATCH, "t", 0, rows(0)),
    ):
        old, young, foreign = folder / ".writing-1-a", folder / ".writing-2-b", folder / ".keep"
        for path in (old, young, foreign):
            path.write_bytes(b"half")
            os.utime(path, (time.time() - 7200, time.time() - 7200))
        os.utime(young)
        act()
        assert not old.exists()
        assert young.exists()
        assert foreign.exists()
    assert library.landed("r", "s", BATCH) == {(f"p0-{n}", "k") for n in range(5)}


def test_a_failed_write_leaves_no_litter_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    library = Library(str(tmp_path))
    library.land("r", "s", BATCH, "t", 0, rows(0))
    monkeypatch.setattr(store_local.os, "fsync", full)
    with pytest.raises(LibraryError, match=r"No space left on device.*run again"):
        library.land("r", "s", BATCH, "t", 1, rows(1))
    assert len(list((tmp_path / FOLDER).iterdir())) == 1
    assert len(library.landed("r", "s", BATCH)) == 5


def test_a_library_copied_elsewhere_reads_the_same(tmp_path: Path) -> None:
    library = Library(str(tmp_path / "one"))
    for number in range(3):
        later = [
            Result(f"p{n}", "k", number, 0.1, f"t{number}", NOON + timedelta(seconds=number))
            for n in range(4)
        ]
        library.land("r", "s", BATCH, f"t{number}", None, later)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    moved = Library(str(tmp_path / "two"))
    assert moved.table("r", "s", BATCH).equals(library.table("r", "s", BATCH))
    assert list(moved.batches("r", "s")) == [BATCH]
    assert moved.steps("r") == ["s"]
