"""What `status` costs the library: reading what has landed, against bare pyarrow reads.

Writes a library of `--batches` x `--steps` files of `--rows` rows, then reads the landed pairs of
all of them through `Library.landed_many` and the same two columns of the same files through
pyarrow alone, each in a process of its own, and prints seconds, milliseconds a file, their ratio
and the peak memory above that of a process which has only imported.

    python benchmarks/library_scan.py
    python benchmarks/library_scan.py --batches 2000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from recipes_orchestration.library import Library, Result
from recipes_orchestration.library import store_local as _local

STEPS = ("lines", "read", "names", "embed")


def keys(batches: int) -> list[str]:
    return [f"letters-{1800 + n // 50}/{n % 50 + 1:04d}" for n in range(batches)]


def write(root: str, batches: int, rows: int) -> None:
    library = Library(root)
    now = datetime.now(UTC)
    # The writing is not what is measured, and 8,000 syncs take minutes on some disks.
    _local.os.fsync = lambda _: None  # type: ignore[assignment]
    for number, batch in enumerate(keys(batches)):
        for step in STEPS:
            results = [
                Result(
                    page_id=f"{batch[:12]}/scan-{number:04d}-{row:05d}.jpg",
                    key=f"{hash((step, number, row)) & (1 << 128) - 1:032x}",
                    value={"text": f"{step} of page {row} " * 20},
                    seconds=0.5,
                    task="t1",
                    landed_at=now,
                )
                for row in range(rows)
            ]
            library.land("letters", step, batch, "t1", None, results)


def scan_library(root: str, batches: int) -> int:
    found = Library(root).landed_many("letters", STEPS, keys(batches))
    return sum(len(pairs) for _, by_step in found for pairs in by_step.values())


def scan_bare(root: str, _: int) -> int:
    total = 0
    for path in Path(root).rglob("*.parquet"):
        with pq.ParquetFile(path) as file:
            total += file.read(columns=["page_id", "key"], use_threads=False).num_rows
    return total


SCANS: dict[str, Callable[[str, int], int]] = {"library": scan_library, "bare": scan_bare}


def peak_mb() -> float:
    # Not getrusage, whose peak of a new process begins at that of the one which started it.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(kind: str, root: str, batches: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--scan", kind, "--root", root, "--batches", str(batches)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the reading of landed pairs.")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--root", help="where the library is written; default a temporary folder")
    parser.add_argument("--scan", choices=sorted(SCANS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.scan:
        before, start = peak_mb(), time.perf_counter()
        rows = SCANS[given.scan](given.root, given.batches)
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "rows": rows, "mb": peak_mb() - before}))
        return
    with tempfile.TemporaryDirectory() as temporary:
        root = given.root or temporary
        start = time.perf_counter()
        write(root, given.batches, given.rows)
        files = given.batches * len(STEPS)
        print(f"{files} files of {given.rows} rows written in {time.perf_counter() - start:.1f} s")
        took = {kind: measured(kind, root, given.batches) for kind in ("bare", "library")}
    for kind, figures in took.items():
        if figures["rows"] != files * given.rows:
            sys.exit(f"{kind} read {figures['rows']} rows instead of {files * given.rows}")
        print(
            f"{kind:8} {figures['seconds']:6.2f} s  {figures['seconds'] / files * 1e3:5.2f} ms "
            f"a file  {figures['mb']:5.0f} MB above the start"
        )
    print(f"ratio    {took['library']['seconds'] / took['bare']['seconds']:.2f}")


if __name__ == "__main__":
    main()
