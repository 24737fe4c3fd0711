"""Lines and reading on a real Slurm, names and embedding here: a backfill in the real Dagster."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.rehearsal.slurm_site import SlurmSite
from recipes_orchestration.stages import stages_of

from .archive import Archive, find_pages
from .command_runs import recipes
from .drawn_pages import drawn
from .job_archive import Arrays, slurm_place
from .waiting_site import Site, open_site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

REAL = Path(
    os.environ.get("RECIPES_REAL_PAGES")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
)
FOLDERS, PAGES = 4, 60
STEPS = ("lines", "read", "names", "embed")
MAX_OPEN = 2
# Two minutes on an idle machine, most of them for reading.
SECONDS = 900.0


def strips() -> Iterator[Image.Image]:
    """Pieces of real pages with a line or two; of drawn ones where there are none.

    What is tested is the way of many pages, and reading a whole one takes seconds.
    """
    for file in sorted([*REAL.rglob("*.jpg"), *REAL.rglob("*.png")]):
        with Image.open(file) as opened:
            page = opened.convert("L")
        page.thumbnail((1100, 1700))
        for top in range(150, page.height - 200, 90):
            yield page.crop((200, top, 520, top + 90))
    for number in range(FOLDERS * PAGES):
        yield drawn([f"Letter {number} of 1891 to Anna Muller in Vienna"])


def make_project(folder: Path, pages: Path, place: Mapping[str, Any] | None) -> Archive:
    """A recipe over the pages; all steps run here when there is no place."""
    (folder / "recipes").mkdir(parents=True)
    far = {} if place is None else {"place": "cluster"}
    steps = [
        {"name": "lines", "run": "lines", **far},
        {"name": "read", "run": "read", "needs": ["lines"], **far},
        {"name": "names", "run": "names", "needs": ["read"]},
        {"name": "embed", "run": "embed", "needs": ["read"]},
    ]
    project = {
        "name": "strips",
        "pages_may_leave": True,
        "sources": {"letters": {"root": str(pages)}},
        "places": {"local": {"workers": 2}}
        | ({} if place is None else {"cluster": {"kind": "slurm", **place}}),
        "limits": {"inline_wait": 1},
    }
    (folder / "project.yaml").write_text(json.dumps(project))
    recipe = {
        "recipe": "letters",
        "source": "letters",
        "consent": "pages_may_leave",
        "max_held": 0.0,
        "steps": steps,
    }
    (folder / "recipes" / "letters.yaml").write_text(json.dumps(recipe))
    return Archive(folder)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Four folders of sixty pages."""
    for number, strip in enumerate(islice(strips(), FOLDERS * PAGES)):
        path = tmp_path / "pages" / "v" / f"{number // PAGES}" / f"p{number % PAGES:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        strip.save(path)
    return tmp_path / "pages"


def values(engine: Engine) -> dict[tuple[str, str], Any]:
    """All landed values by step and page."""
    found: dict[tuple[str, str], Any] = {}
    for step in STEPS:
        for folder in range(FOLDERS):
            table = engine.library.table("letters", step, f"v/{folder}/0001", ["page_id", "value"])
            found |= {(step, row["page_id"]): row["value"] for row in table.to_pylist()}
    return found


@contextmanager
def watched(slurm: SlurmSite) -> Generator[list[int]]:
    """How many arrays are in the queue or run, looked at all the while."""
    seen: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.3):
            seen.append(len(set(slurm.ask("squeue", "-h", "-t", "PD,R", "-o", "%F").split())))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


@pytest.fixture
def cluster(slurm_site: SlurmSite, pages: Path, tmp_path: Path) -> Iterator[Site]:
    place = slurm_place(slurm_site, tmp_path, pages_per_task=30, mem="1500M", max_open=MAX_OPEN)
    archive = make_project(tmp_path / "there", pages, place)
    assert recipes(archive, "discover").code == 0
    with open_site(archive, None, tmp_path, {}, "letters") as site:
        yield site


def all_here(folder: Path, pages: Path) -> dict[tuple[str, str], Any]:
    """The same recipe with all its steps here."""
    archive = make_project(folder, pages, None)
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        recipe = engine.project.recipe("letters")
        for number in range(FOLDERS):
            for stage in stages_of(recipe):
                run_stage(engine, stage, f"v/{number}/0001")
        return values(engine)


def test_a_backfill_with_a_stage_on_slurm_gives_what_it_gives_here(
    cluster: Site, slurm_site: SlurmSite, pages: Path, tmp_path: Path
):
    arrays = Arrays(slurm_site)
    assert cluster.dev
    # The node takes no work, so that all there is to send has been sent and waits.
    slurm_site.ask("scontrol", "update", "PartitionName=debug", "State=DOWN")
    launched = time.time()
    with watched(slurm_site) as open_arrays:
        backfill = cluster.backfill("v")
        waiting = cluster.all_waiting(backfill, FOLDERS)
        cluster.no_run_process_since(launched)
        ids = {run.tags.get("recipes/task", "") for run in waiting}
        assert len(arrays) == MAX_OPEN
        assert sum("_0" in each for each in ids) == MAX_OPEN
        slurm_site.ask("scontrol", "update", "PartitionName=debug", "State=UP")
        assert cluster.ended(backfill, SECONDS) == "COMPLETED_SUCCESS"
    assert max(open_arrays) <= MAX_OPEN
    assert len(arrays) == FOLDERS
    with open_engine(cluster.archive.project()) as engine:
        there = values(engine)
        tasks = [
            task
            for number in range(FOLDERS)
            for task in engine.ledger.tasks.of_page(f"v/{number}/p00.png")
            + engine.ledger.tasks.of_page(f"v/{number}/p59.png")
        ]
        reports = [
            report
            for number in range(FOLDERS)
            for step in ("lines", "read")
            for report in engine.ledger.tasks.reports(
                "letters",
                f"v/{number}/0001",
                step,
                engine.project.recipe("letters").fingerprint(step),
            )
        ]
    sent = Counter(page for task in tasks if task.place == "cluster" for page, _ in task.pages)
    assert len(sent) == FOLDERS * PAGES
    assert set(sent.values()) == {1}
    assert {step["model_loads"] for report in reports for step in report["steps"]} == {1}
    here = all_here(tmp_path / "here", pages)
    assert len(here) == len(STEPS) * FOLDERS * PAGES
    assert there == here
