"""What the ledger's two bulk writes cost beside the same rows through bare sqlite3.

Recording a folder of 500 new pages as one batch, and preparing a task of 500 pages with 2,000
claims; each into a fresh SQLite file, one commit each. Median of `--rounds`; prints the ratio.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.ledger.pages import FoundPage

PAGES = 500
CLAIMS = 2000


def found(folder: str) -> list[FoundPage]:
    ids = [f"{folder}/{page:06}.jpg" for page in range(PAGES)]
    return [FoundPage(page_id, page_id, None, f"{page_id:>64}", 1, "1") for page_id in ids]


def measured(rounds: int, work: Callable[[int], object]) -> float:
    """The median seconds of the rounds, after one that is not counted."""
    seconds: list[float] = []
    for number in range(rounds + 1):
        start = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def bare(database: sqlite3.Connection, table: str, rows: list[tuple[str, ...]]) -> None:
    marks = ", ".join("?" * len(rows[0]))
    database.executemany(f"insert into {table} values ({marks})", rows)
    database.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "bare.db")
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.execute("create table pages (id text primary key, file, sha256, size, stamp)")
        database.execute("create table claims (key text primary key, task)")
        with open_ledger(f"sqlite:///{folder}/ledger.db") as ledger:

            def record(number: int) -> None:
                pages = found(f"f{number}")
                ids = [page.page_id for page in pages]
                ledger.pages.record(
                    "s", f"f{number}", upsert=pages, gone=[], new_batches=[(1, ids)]
                )

            def bare_record(number: int) -> None:
                pages = found(f"f{number}")
                rows = [(p.page_id, p.file, p.sha256, str(p.size), p.stamp) for p in pages]
                bare(database, "pages", rows)

            def prepare(number: int) -> None:
                keys = [f"{number}-{key:030}" for key in range(CLAIMS)]
                pages = [(f"a/{page:06}.jpg", f"{page:064}") for page in range(PAGES)]
                ledger.tasks.prepare(
                    f"n{number}", "r", "s", "s", "b", "local", 1, {}, pages, keys, "me"
                )

            def bare_prepare(number: int) -> None:
                bare(database, "claims", [(f"{number}-{key:030}", "t") for key in range(CLAIMS)])

            print(f"{'':34}{'bare ms':>10}{'ledger ms':>11}{'ratio':>8}")
            for name, ours, theirs in (
                (f"record a folder of {PAGES} pages", record, bare_record),
                (f"prepare a task of {CLAIMS:,} claims", prepare, bare_prepare),
            ):
                low, high = measured(rounds, theirs), measured(rounds, ours)
                print(f"{name:34}{low * 1000:10.1f}{high * 1000:11.1f}{high / low:8.1f}")
        database.close()


if __name__ == "__main__":
    main()
