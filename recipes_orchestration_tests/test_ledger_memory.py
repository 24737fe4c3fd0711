from __future__ import annotations

import tracemalloc

from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.ledger.pages import FoundPage


def found(folder: str, count: int) -> list[FoundPage]:
    ids = [f"{folder}/{page:06}.jpg" for page in range(count)]
    return [FoundPage(page_id, page_id, None, f"{page_id:>64}", 1, "1") for page_id in ids]


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
