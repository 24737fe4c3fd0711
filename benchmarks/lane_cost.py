"""What the local lane costs a page, beside a bare loop over the same steps in a like pool.

    python benchmarks/lane_cost.py [--pages 1000] [--rounds 5]

The lane is `run_stage` over batches of 500 pages: it looks, claims, hands the pages to 2 workers,
lands every 25 pages and merges the files. The bare loop reads and decodes the same pages and calls
the same steps in 2 worker processes, 25 pages at a time, and lands nothing. Workers have started
and loaded their model before either is timed. Both take turns, and the first of a round is now the
one, now the other; the cost is the median of the differences within a round.

Seconds are those of a worker: wall seconds x workers / pages. Ends with 1 when the lane costs more
than 5 ms or 2 % a page, whichever is larger, in any of the cases.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import multiprocessing
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.discover import discover
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.pages.page import Page
from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.project import load_project
from recipes_orchestration.stages import stages_of
from recipes_orchestration.steps.step import Context, step

WORKERS = 2
ALLOWED_SECONDS = 0.005
ALLOWED_SHARE = 0.02
CHUNK = 25
WARM_PAGES = 50
# Rounds of SHA-256 that take about 20 ms.
SLOW_ROUNDS = 110_000

PROJECT = """\
name: lane
sources:
  pages: {{root: pages}}
places:
  local: {{workers: {workers}}}
"""


@dataclass(frozen=True)
class Case:
    """`steps` are functions of this file; each one after the first needs the one before."""

    name: str
    draw: Callable[[Path, int], None]
    steps: tuple[str, ...]


def load(_: Mapping[str, Any]) -> bytes:
    return b"model"


@step(setup=load)
def quick(page: Page, context: Context) -> dict[str, Any]:
    """The size of the decoded page."""
    return {"size": list(page.image.size), "from": sorted(context.needs)}


@step(setup=load)
def slow(page: Page, context: Context) -> dict[str, Any]:
    """The size of the decoded page, after about 20 ms of work on one core."""
    worked = hashlib.pbkdf2_hmac("sha256", context.model, b"page", SLOW_ROUNDS)
    return {"size": list(page.image.size), "worked": worked.hex()}


STEPS = {"quick": quick, "slow": slow}


def draw_small(path: Path, number: int) -> None:
    image = Image.new("L", (120, 60), 255)
    ImageDraw.Draw(image).text((4, 4), f"page {number}", fill=0)
    image.save(path.with_suffix(".png"))


def draw_scan(path: Path, number: int) -> None:
    # One picture for all, and a comment that makes the bytes of each page its own.
    data = scan_bytes()
    note = b"%d" % number
    comment = b"\xff\xfe" + (len(note) + 2).to_bytes(2, "big") + note
    path.with_suffix(".jpg").write_bytes(data[:2] + comment + data[2:])


@cache
def scan_bytes() -> bytes:
    chance = random.Random(1)
    image = Image.new("RGB", (750, 1050), (246, 240, 225))
    pen = ImageDraw.Draw(image)
    for line in range(38):
        words = ("".join(chance.choices("abcdefghijklmnopqrstu", k=7)) for _ in range(12))
        pen.text((60, 50 + 25 * line), " ".join(words), fill=(40, 35, 30))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=58)
    return stream.getvalue()


CASES = (
    Case("small PNG, 1 quick step", draw_small, ("quick",)),
    Case("small PNG, 4 quick steps", draw_small, ("quick",) * 4),
    Case("100 kB JPEG, 1 step of 20 ms", draw_scan, ("slow",)),
)


def write_project(folder: Path, case: Case, pages: int) -> None:
    (folder / "recipes").mkdir(parents=True)
    (folder / "project.yaml").write_text(PROJECT.format(workers=WORKERS))
    lines = ["recipe: lane", "source: pages", "steps:"]
    for number, name in enumerate(case.steps):
        needs = f", needs: [s{number - 1}]" if number else ""
        lines.append(f'  - {{name: s{number}, run: "lane_cost:{name}"{needs}}}')
    (folder / "recipes" / "lane.yaml").write_text("\n".join(lines) + "\n")
    for part, count in (("box", pages), ("warm", WARM_PAGES)):
        (folder / "pages" / part).mkdir(parents=True)
        for number in range(count):
            # The warm pages are others, or they would be copies of results that have landed.
            case.draw(folder / "pages" / part / f"p{number}", number + (part == "warm") * 10**6)


def bare_pages(reader: SourceReader, steps: Sequence[str], files: Sequence[str]) -> list[Any]:
    values: list[Any] = []
    for file in files:
        page = Page(file, "", file, None, partial(reader.read, file))
        needs: dict[str, Any] = {}
        for number, name in enumerate(steps):
            value = STEPS[name](page, Context(f"s{number}", {}, needs, b"model"))
            needs = {f"s{number}": value}
            values.append(value)
    return values


def run_bare(
    pool: ProcessPoolExecutor, reader: SourceReader, case: Case, files: Sequence[str]
) -> int:
    chunks = [files[start : start + CHUNK] for start in range(0, len(files), CHUNK)]
    return sum(len(values) for values in pool.map(partial(bare_pages, reader, case.steps), chunks))


def run_lane(engine: Engine, batches: Sequence[str]) -> int:
    stage = stages_of(engine.project.recipe("lane"))[0]
    landed = 0
    for batch in batches:
        view = run_stage(engine, stage, batch)
        assert view is not None, "a local stage is never deferred"
        landed += sum(step.landed for step in view.steps.values())
    return landed


def measure(case: Case, pages: int, rounds: int) -> tuple[float, float, float]:
    """Median seconds of a worker for one page: bare, in the lane, and their difference."""
    bare: list[float] = []
    lane: list[float] = []
    with tempfile.TemporaryDirectory(prefix="recipes-lane-") as temporary:
        folder = Path(temporary)
        write_project(folder, case, pages)
        files = {part: sorted(f"{part}/{path.name}" for path in (folder / "pages" / part).iterdir())
                 for part in ("box", "warm")}  # fmt: skip
        context = multiprocessing.get_context("spawn")
        with (
            open_engine(load_project(folder)) as engine,
            ProcessPoolExecutor(WORKERS, mp_context=context) as pool,
        ):
            source = engine.source("pages")
            discover(source, engine.ledger)
            batches = [row.key for row in engine.ledger.pages.batches("pages", "box")]
            run_bare(pool, source.reader, case, files["warm"])
            run_lane(engine, ["warm/0001"])
            expected = pages * len(case.steps)
            turns = [
                (bare, partial(run_bare, pool, source.reader, case, files["box"])),
                (lane, partial(run_lane, engine, batches)),
            ]
            for _ in range(rounds):
                turns.reverse()
                for times, work in turns:
                    started = time.perf_counter()
                    done = work()
                    times.append((time.perf_counter() - started) * WORKERS / pages)
                    if done != expected:
                        sys.exit(f"{case.name}: {done} results instead of {expected}")
                shutil.rmtree(engine.project.library)
    costs = [of_lane - of_bare for of_lane, of_bare in zip(lane, bare, strict=True)]
    return statistics.median(bare), statistics.median(lane), statistics.median(costs)


def main() -> int:
    parser = argparse.ArgumentParser(description="The local lane's own cost per page.")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    over = False
    print(f"{options.pages:,} pages, {WORKERS} workers, median of {options.rounds} rounds")
    print(f"{'milliseconds a page':32}{'bare':>8}{'lane':>8}{'cost':>8}{'%':>8}{'bound':>8}")
    for case in CASES:
        bare, lane, cost = measure(case, options.pages, options.rounds)
        bound = max(ALLOWED_SECONDS, ALLOWED_SHARE * bare)
        over = over or cost > bound
        print(
            f"{case.name:32}{bare * 1e3:8.2f}{lane * 1e3:8.2f}{cost * 1e3:8.2f}"
            f"{cost / bare * 100:8.1f}{bound * 1e3:8.2f}{'  over' if cost > bound else ''}",
            flush=True,
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
