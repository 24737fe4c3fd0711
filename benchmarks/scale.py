"""`status`, `plan` and a rerun over very many landed pages.

    python benchmarks/scale.py [--pages 100000]

Writes the ledger and the library of a project of so many pages by script: batches of 500, two in a
folder, four steps, everything landed. There are no page files and no values of the real size: a
value here has about 300 bytes of JSON (real ones have 5 to 10 kB, which would be 40 GB on the disk
for 1,000,000 pages); neither `status` nor `plan` reads values. Then, each in a process of its own:

- `recipes status` and `recipes plan`: seconds by the clock and of the processor, with the start of
  the process, and its peak memory;
- the recipe over one landed batch, which must send nothing.

The seconds for 100,000 pages are measured in the same run when another number is asked for, and the
growth is printed. Ends with 1 when `status` or `plan` takes 10 s by the clock or 500 MB for 100,000
pages, or when the processor seconds of any of the three grow worse than linearly: by the clock, the
longer run would also be charged with whatever else the machine did meanwhile.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ALLOWED_SECONDS = 10.0
ALLOWED_MB = 500.0
SIZE = 100_000
BATCH = 500
BATCHES_IN_FOLDER = 2
WORDS = "Received of the bearer the sum of four pounds two shillings, being the rent of the mill. "

PROJECT = "name: scale\nsources:\n  scans: {root: pages}\n"
RECIPE = """\
recipe: letters
source: scans
steps:
  - {name: lines, run: lines, place: local}
  - {name: read, run: read, needs: [lines]}
  - {name: names, run: names, needs: [read]}
  - {name: embed, run: embed, needs: [read]}
"""


@dataclass(frozen=True)
class Figures:
    """Seconds by the clock and of the processor, and the peak memory."""

    seconds: float
    processor: float
    megabytes: float


def write(folder: Path, pages: int) -> None:
    from recipes_orchestration.engine.engine import open_engine
    from recipes_orchestration.ledger.pages import FoundPage
    from recipes_orchestration.library import Result
    from recipes_orchestration.library import store_local as _local
    from recipes_orchestration.project import load_project
    from recipes_orchestration.recipe import page_key

    # The writing is not what is measured, and 80,000 syncs take very long on some disks.
    _local.os.fsync = lambda _: None  # type: ignore[assignment]
    (folder / "recipes").mkdir()
    (folder / "pages").mkdir()
    (folder / "project.yaml").write_text(PROJECT)
    (folder / "recipes" / "letters.yaml").write_text(RECIPE)
    now = datetime.now(UTC)
    with open_engine(load_project(folder)) as engine:
        recipe = engine.project.recipe("letters")
        fingerprints = {step.name: recipe.fingerprint(step.name) for step in recipe.steps}
        in_folder = BATCH * BATCHES_IN_FOLDER
        for start in range(0, pages, in_folder):
            box = f"letters-{start // in_folder:05d}"
            names = [
                f"{box}/scan-{start + n:08d}.jpg" for n in range(min(in_folder, pages - start))
            ]
            shas = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
            cuts = [names[at : at + BATCH] for at in range(0, len(names), BATCH)]
            engine.ledger.pages.record(
                "scans",
                box,
                upsert=[
                    FoundPage(name, name, None, shas[name], 812_345, f"812345:17617{n:014d}")
                    for n, name in enumerate(names)
                ],
                gone=(),
                new_batches=[(number, cut) for number, cut in enumerate(cuts, 1)],
            )
            for number, cut in enumerate(cuts, 1):
                for step, fingerprint in fingerprints.items():
                    results = [
                        Result(
                            page_id=name,
                            key=page_key(fingerprint, shas[name]),
                            value={"text": f"{name} {WORDS * 3}"},
                            seconds=1.25,
                            task="written-by-script",
                            landed_at=now,
                        )
                        for name in cut
                    ]
                    engine.library.land("letters", step, f"{box}/{number:04d}", "t", None, results)


def command(*words: str) -> None:
    from recipes_orchestration.cli import app

    # `recipes` as its console script runs it; the figures go to stderr.
    app(list(words), standalone_mode=False)


def status(folder: Path) -> None:
    command("status", "letters", "--json", "--project", str(folder))


def plan(folder: Path) -> None:
    command("plan", "letters", "--json", "--project", str(folder))


def rerun(folder: Path) -> None:
    from recipes_orchestration.engine.advance import run_stage
    from recipes_orchestration.engine.engine import open_engine
    from recipes_orchestration.project import load_project
    from recipes_orchestration.stages import stages_of

    with open_engine(load_project(folder)) as engine:
        batch = engine.ledger.pages.batches("scans")[0].key
        for stage in stages_of(engine.project.recipe("letters")):
            view = run_stage(engine, stage, batch)
            assert view is not None, "a local stage is never deferred"
            tasks = engine.ledger.tasks.last_attempt("letters", stage.name, batch)
            landed = {name: step.landed for name, step in view.steps.items()}
            print(json.dumps({"tasks": tasks, "landed": landed}))


MEASURED: dict[str, Callable[[Path], None]] = {"status": status, "plan": plan, "rerun": rerun}


def run_part(part: str, folder: Path, pages: int) -> None:
    """In a process of its own: the work, then its peak memory as the last line on stderr."""
    if part == "write":
        write(folder, pages)
    else:
        MEASURED[part](folder)
    # Not getrusage, whose peak of a new process begins at that of the one which started it.
    kept = Path("/proc/self/status").read_text()
    print(int(kept.partition("VmHWM:")[2].split()[0]) / 1024, file=sys.stderr)


def measured(part: str, folder: Path, pages: int) -> tuple[Figures, str]:
    """The figures and what was printed."""
    words = [sys.executable, __file__, "--part", part, "--at", str(folder), "--pages", str(pages)]
    hidden = ("RECIPES_PROJECT", "RECIPES_LEDGER_URL")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env=clean)
    seconds, after = time.perf_counter() - started, os.times()
    if done.returncode:
        sys.exit(f"{part} failed: {done.stderr}")
    processor = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    megabytes = float(done.stderr.strip().split("\n")[-1])
    return Figures(seconds, processor, megabytes), done.stdout


def check(part: str, printed: str, pages: int) -> None:
    """Ends the benchmark when what was printed is not that every page has landed."""
    document = json.loads(printed)
    if part == "status":
        steps = document["recipes"][0]["totals"]
        right = len(steps) == 4 and all(step["landed"] == pages for step in steps.values())
    elif part == "plan":
        (stage,) = document["stages"]
        steps = stage["steps"]
        right = stage["pages"] == 0 and all(step["landed"] == pages for step in steps.values())
    else:
        right = document == {
            "tasks": 0,
            "landed": dict.fromkeys(("lines", "read", "names", "embed"), min(BATCH, pages)),
        }
    if not right:
        sys.exit(f"{part} of {pages:,} landed pages says {printed[:2000]}")


def measure(pages: int) -> dict[str, Figures]:
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="recipes-scale-") as temporary:
        folder = Path(temporary)
        written, _ = measured("write", folder, pages)
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        print(
            f"{pages:,} pages in {-(-pages // BATCH):,} batches, 4 steps, "
            f"written in {written.seconds:.0f} s; {disk:,.0f} MB on disk"
        )
        for part in MEASURED:
            figures[part], printed = measured(part, folder, pages)
            check(part, printed, pages)
            took = figures[part]
            print(
                f"{part:8}{took.seconds:8.2f} s{took.processor:8.2f} s of the processor"
                f"{took.megabytes:8.0f} MB",
                flush=True,
            )
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description="status, plan and a rerun over landed pages.")
    parser.add_argument("--pages", type=int, default=SIZE)
    parser.add_argument("--part", choices=("write", *MEASURED), help=argparse.SUPPRESS)
    parser.add_argument("--at", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_part(options.part, options.at, options.pages)
        return 0
    base = measure(SIZE)
    over = [
        f"{part} takes {base[part].seconds:.1f} s and {base[part].megabytes:.0f} MB"
        for part in ("status", "plan")
        if base[part].seconds >= ALLOWED_SECONDS or base[part].megabytes >= ALLOWED_MB
    ]
    if options.pages != SIZE:
        times = options.pages / SIZE
        for part, took in measure(options.pages).items():
            growth = took.processor / base[part].processor
            print(
                f"{part:8}{growth:6.2f} times the processor seconds and "
                f"{took.megabytes / base[part].megabytes:.2f} times the memory of {SIZE:,} pages, "
                f"for {times:g} times as many"
            )
            if times > 1 and growth > times:
                over.append(f"{part} grows {growth / times:.2f} times linearly")
    print("; ".join(over) or "within 10 s and 500 MB for 100,000 pages")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
