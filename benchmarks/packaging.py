"""What packing pages for a job place and landing its results cost, beside `tar` and `sha256sum`.

    python benchmarks/packaging.py [--pages 5000] [--rounds 3]

The pages are files of 300,000 bytes that nothing decodes. Ours packs them into a batch folder in
tasks of 500, writes their manifests, and lands the results of two steps (`lines` and `read` of a
page of 40 lines, 15 kB together) from journals as a runner writes them, through the engine into a
library on the same disk. The bare way is `tar` of the same files and `sha256sum` of each. Both take
turns; files are in the page cache for both; ours counts without the start of Python, and is printed
with it too. The ratios are the medians over the rounds.

Ends with 1 when ours takes more than 1.5 times the bare way, by the clock or the processor, or when
its peak memory grows by more than 40 MB from a fifth of the pages to all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE_BYTES = 300_000
TASK_PAGES = 500
LINES = 40
ALLOWED = 1.5
ALLOWED_MB = 40.0

PROJECT = """\
name: packaging
sources:
  scans: {root: scans}
"""
RECIPE = """\
recipe: letters
source: scans
steps:
- {name: lines, run: lines}
- {name: read, run: read, needs: [lines]}
"""
SCANS, BATCH, JOURNALS = "scans", "batch", "journals"


def page_file(number: int) -> str:
    return f"box-{number // TASK_PAGES:02d}/{number:05d}.jpg"


def draw(project: Path, pages: int) -> None:
    (project / "recipes").mkdir(parents=True)
    (project / "project.yaml").write_text(PROJECT)
    (project / "recipes" / "letters.yaml").write_text(RECIPE)
    for number in range(pages):
        path = project / SCANS / page_file(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\xd8\xff\xe0" + os.urandom(PAGE_BYTES - 4))


def found_lines(chance: random.Random, *, text: bool) -> dict[str, Any]:
    lines: list[dict[str, Any]] = []
    for number in range(LINES):
        left, top = chance.randint(50, 90), 60 + 40 * number
        box = [left, top, left + 900, top + 32]
        line: dict[str, Any] = {
            "bbox": box,
            "polygon": [[box[0], box[1]], [box[2], box[1]], [box[2], box[3]], [box[0], box[3]]],
            "confidence": round(chance.random(), 4),
        }
        if text:
            line["text"] = "".join(chance.choices("abcdefghijklmnopqrstu  ", k=60))
        lines.append(line)
    value: dict[str, Any] = {"width": 1000, "height": 1700, "lines": lines}
    return {"text": "\n".join(line["text"] for line in lines), **value} if text else value


def write_journals(project: Path, pages: int) -> None:
    """Results as runners write them, step by step; a tenth of the values are made anew."""
    from recipes_orchestration.runner.journal import Journal
    from recipes_orchestration.runner.work import Outcome

    chance = random.Random(1)
    values = {
        step: [found_lines(chance, text=step == "read") for _ in range(50)]
        for step in ("lines", "read")
    }
    for task in range(0, pages, TASK_PAGES):
        path = project / JOURNALS / str(task // TASK_PAGES) / "results.jsonl"
        with Journal(path) as journal:
            for step, some in values.items():
                for number in range(task, min(pages, task + TASK_PAGES)):
                    value = {**some[number % len(some)], "number": number}
                    journal.append(Outcome(page_file(number), step, 1.5, value=value))


def ours(project: Path, pages: int) -> dict[str, float]:
    """Packs and lands; in a process of its own."""
    # pyarrow imports it with the first table, and the start of Python is not what is measured.
    import pandas as _

    from recipes_orchestration.engine.engine import open_engine
    from recipes_orchestration.engine.land import land_chunk
    from recipes_orchestration.ledger.tasks import TaskRow, TaskState
    from recipes_orchestration.places.place import Chunk
    from recipes_orchestration.places.task_folders.packaging import Packaging, cut
    from recipes_orchestration.places.task_folders.returned import Expected, read_returned
    from recipes_orchestration.project import load_project
    from recipes_orchestration.runner.work import PageWork, TaskSpec

    loaded = load_project(project)
    recipe = loaded.recipes["letters"]
    steps = tuple(step.name for step in recipe.steps)
    with open_engine(loaded) as engine:
        hashes = (project / "hashes").read_text().split("\n")
        works = tuple(
            PageWork(page_file(number), hashes[number], page_file(number), None, steps)
            for number in range(pages)
        )
        reader = engine.source("scans").reader
        spec = TaskSpec(recipe.steps, works, reader, str(project))
        before, started = peak_mb(), clocks()
        tasks: list[tuple[str, Path, TaskSpec]] = []
        with Packaging(project / BATCH) as packaging:
            for index, part in enumerate(cut(spec, TASK_PAGES)):
                name = f"lines_to_read-{'0' * 32}_{index}"
                tasks.append((name, packaging.write(name, packaging.pack(part)), part))
        packed = clocks()
        rows = 0
        for index, (name, _, part) in enumerate(tasks):
            now = datetime.now(UTC)
            task = TaskRow(
                id=name,
                name=name,
                recipe=recipe.name,
                stage="lines_to_read",
                source="scans",
                batch="box/0001",
                place="cluster",
                state=TaskState.ended,
                remote_id=str(index),
                attempt=1,
                fingerprints={step: recipe.fingerprint(step) for step in steps},
                pages=tuple((work.page_id, work.sha256) for work in part.pages),
                owner="",
                message=None,
                created_at=now,
                sent_at=now,
                heartbeat_at=now,
                ended_at=now,
                landed_at=None,
            )
            out = project / JOURNALS / str(index)
            returned = read_returned(out, Expected.of_spec(name, part))
            for number, outcomes in enumerate(returned.chunks(), 1):
                rows += land_chunk(engine, task, Chunk(number, outcomes))
        ended = clocks()
    return {
        "wall": ended[0] - started[0],
        "cpu": ended[1] - started[1],
        "packed wall": packed[0] - started[0],
        "packed cpu": packed[1] - started[1],
        "mb": peak_mb() - before,
        "rows": rows,
        "files": len(os.listdir(project / BATCH / "pages")),
    }


def bare(project: Path) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    started = clocks()
    subprocess.run(["tar", "cf", project / "bare.tar", "-C", project, SCANS], check=True)
    command = f"find {SCANS} -type f -print0 | xargs -0 sha256sum > bare.sums"
    subprocess.run(["sh", "-c", command], check=True, cwd=project)
    ended = clocks()
    (project / "bare.tar").unlink()
    return ended[0] - started[0], ended[1] - started[1]


def clocks() -> tuple[float, float]:
    times = os.times()
    return time.perf_counter(), sum(times[:4])


def peak_mb() -> float:
    # Not getrusage, whose peak of a new process begins at that of the one which started it.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(project: Path, pages: int) -> dict[str, float]:
    started = clocks()
    command = [sys.executable, __file__, "--ours", str(project), "--pages", str(pages)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    ended = clocks()
    for name in (BATCH, "library", ".recipes"):
        shutil.rmtree(project / name, ignore_errors=True)
    figures = json.loads(done.stdout)
    if (figures["rows"], figures["files"]) != (2 * pages, pages):
        sys.exit(f"{figures['rows']} rows of {figures['files']} files instead of {pages}")
    return {**figures, "all wall": ended[0] - started[0], "all cpu": ended[1] - started[1]}


def hash_pages(project: Path, pages: int) -> None:
    digests = (
        hashlib.sha256((project / SCANS / page_file(number)).read_bytes()).hexdigest()
        for number in range(pages)
    )
    (project / "hashes").write_text("\n".join(digests))


def compare(project: Path, pages: int, rounds: int) -> Iterator[str]:
    """Prints the figures; gives what is over a bound."""
    small = measured(project, pages // 5)
    large = small
    ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
    print(f"{'':8} {'bare':>14} {'ours':>14} {'of it packing':>14} {'with Python':>14}   s by the")
    print(f"{'':8} {'':>14} {'':>14} {'':>14} {'':>14}   clock / of the processor")
    for number in range(rounds):
        turns: list[Callable[[], Any]] = [lambda: bare(project), lambda: measured(project, pages)]
        if number % 2:
            large, (wall, cpu) = turns[1](), turns[0]()
        else:
            (wall, cpu), large = turns[0](), turns[1]()
        ratios["wall"].append(large["wall"] / wall)
        ratios["cpu"].append(large["cpu"] / cpu)
        pairs = [
            (wall, cpu),
            *((large[f"{a}wall"], large[f"{a}cpu"]) for a in ("", "packed ", "all ")),
        ]
        shown = " ".join(f"{a:6.1f} /{b:6.1f}" for a, b in pairs)
        print(f"round {number + 1}  {shown}")
    for name, each in ratios.items():
        ratio = statistics.median(each)
        print(f"ratio by {'the clock' if name == 'wall' else 'the processor'}: {ratio:.2f}")
        if ratio > ALLOWED:
            yield f"{name} is {ratio:.2f} times the bare way; {ALLOWED} are allowed"
    grown = large["mb"] - small["mb"]
    print(
        f"peak memory above the start: {small['mb']:.0f} MB for {pages // 5} pages, "
        f"{large['mb']:.0f} MB for {pages}"
    )
    if grown > ALLOWED_MB:
        yield f"memory grew by {grown:.0f} MB; {ALLOWED_MB:.0f} are allowed"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures packing pages and landing results.")
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ours", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ours is not None:
        print(json.dumps(ours(given.ours, given.pages)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "project"
        draw(project, given.pages)
        hash_pages(project, given.pages)
        write_journals(project, given.pages)
        over = list(compare(project, given.pages, given.rounds))
    if over:
        sys.exit("; ".join(over))


if __name__ == "__main__":
    main()
