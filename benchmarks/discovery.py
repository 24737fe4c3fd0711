"""Discovery of unchanged files, beside a bare walk of the same folders in the same run.

    python benchmarks/discovery.py [--files 100000] [--folder-size 500]

Writes a tree of small files, discovers it once (all files new), then again (none changed), and
prints both beside `os.scandir` with one `stat` a file. Fails when 100,000 unchanged files take
15 seconds or more, or another number more than its share of that.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from recipes_orchestration.engine.discover import Discovered, discover
from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.pages.source import Source

T = TypeVar("T")
ALLOWED_PER_FILE = 15 / 100_000
# The shortest bytes that are known as a JPEG; whole pictures would only measure the disk.
PAGE = b"\xff\xd8\xff\xd9"


def write_tree(root: Path, files: int, folder_size: int) -> None:
    for start in range(0, files, folder_size):
        folder = root / f"box-{start // folder_size:05d}"
        folder.mkdir(parents=True)
        for number in range(start, min(start + folder_size, files)):
            descriptor = os.open(f"{folder}/page{number}.jpg", os.O_CREAT | os.O_WRONLY)
            os.write(descriptor, PAGE + b"%d" % number)
            os.close(descriptor)


def bare_walk(root: Path) -> int:
    found = 0
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found += entry.stat().st_size > 0
    return found


def timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer


def main() -> int:
    parser = argparse.ArgumentParser(description="Discovery of unchanged files.")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folder-size", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recipes-discovery-") as temporary:
        root = Path(temporary) / "pages"
        write_tree(root, options.files, options.folder_size)
        source = Source("bench", str(root))
        with open_ledger(f"sqlite:///{temporary}/ledger.sqlite") as ledger:

            def look() -> Discovered:
                return discover(source, ledger)

            bare, found = timed(lambda: bare_walk(root))
            first, seen = timed(look)
            again, same = timed(look)
    assert found == seen.new == same.unchanged == options.files
    assert not same.batches
    rows = (
        ("bare scandir and stat", bare),
        ("discovery, all files new", first),
        ("discovery, none changed", again),
    )
    print(f"{options.files:,} files in folders of {options.folder_size}")
    print(f"{'':28}{'seconds':>10}{'us a file':>12}{'times bare':>12}")
    for name, seconds in rows:
        each = seconds / options.files * 1e6
        print(f"{name:28}{seconds:10.2f}{each:12.1f}{seconds / bare:12.1f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    allowed = ALLOWED_PER_FILE * options.files
    print(f"allowed for unchanged files: {allowed:.1f} s")
    return 0 if again < allowed else 1


if __name__ == "__main__":
    sys.exit(main())
