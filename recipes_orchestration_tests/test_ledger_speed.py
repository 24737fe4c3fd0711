from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.ledger.pages import FoundPage


def best_of(tries: int, work: Callable[[int], object]) -> float:
    """The seconds of the fastest try: a busy machine slows some down, a slow ledger all."""
    seconds: list[float] = []
    for number in range(tries):
        start = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def found(folder: str, count: int) -> list[FoundPage]:
    ids = [f"{folder}/{page:06}.jpg" for page in range(count)]
    return [FoundPage(page_id, page_id, None, f"{page_id:>64}", 1, "1") for page_id in ids]


def test_recording_500_pages_takes_under_50_milliseconds(tmp_path: Path) -> None:
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:

        def record(number: int) -> None:
            pages = found(f"f{number}", 500)
            ids = [page.page_id for page in pages]
            ledger.pages.record("s", f"f{number}", upsert=pages, gone=[], new_batches=[(1, ids)])

        assert best_of(8, record) < 0.05


def test_a_task_with_2000_claims_takes_under_60_milliseconds(tmp_path: Path) -> None:
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:

        def prepare(number: int) -> None:
            keys = [f"{number}-{key:030}" for key in range(2000)]
            pages = [(f"a/{page:06}.jpg", f"{page:064}") for page in range(500)]
            assert ledger.tasks.prepare(
                f"n{number}", "r", "s", "s", "b", "local", 1, {}, pages, keys, "me"
            )

        assert best_of(8, prepare) < 0.06


def test_memory_of_a_walk_does_not_grow_with_the_source(ledger_url: str) -> None:
    def peak_of_a_walk() -> int:
        tracemalloc.start()
        try:
            assert sum(len(rows) for _, rows in ledger.pages.iter_batches("s")) > 0
            assert sum(1 for _ in ledger.pages.stamps_of_source("s")) > 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with open_ledger(ledger_url) as ledger:
        peaks: list[int] = []
        for number in range(4):
            pages = found(f"f{number}", 6000)
            ids = [page.page_id for page in pages]
            plan = [(part + 1, ids[part * 500 : part * 500 + 500]) for part in range(12)]
            ledger.pages.record("s", f"f{number}", upsert=pages, gone=[], new_batches=plan)
            peaks.append(peak_of_a_walk())
    assert peaks[3] < 1.3 * peaks[0]
