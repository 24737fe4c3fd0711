"""A small archive whose first steps run at a place that takes jobs, counted where they run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes_orchestration.engine.advance import Seen, advance, run_stage
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import BatchView, look
from recipes_orchestration.project import load_project
from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite
from recipes_orchestration.stages import Stage, stages_of

from .archive import Archive, find_pages

__all__ = [
    "BATCH",
    "RUNNER",
    "Arrays",
    "JobArchive",
    "advance_until",
    "chain",
    "first_stage",
    "make_job_archive",
    "run_all",
    "slurm_place",
    "values_of",
]

BATCH = "a/0001"
RUNNER = str(Path(sys.executable).parent / "recipes-runner")
STEPS = ["size", "area", "words"]

# The steps write where the archive is, wherever their own file was copied to.
CODE = '''
"""Steps that write a line for each page they run on."""

import os
import time
from pathlib import Path

from recipes_orchestration.steps.step import step

HERE = Path({here!r})


def note(name, *words):
    handle = os.open(HERE / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, ("\\t".join(words) + "\\n").encode())
    os.close(handle)


def load(params):
    note("loaded.log", os.environ.get("SLURM_ARRAY_TASK_ID", "-"), str(os.getpid()))
    return {{"loaded": True}}


def wait_for(name):
    """Until the test makes that file."""
    while not (HERE / name).exists():
        time.sleep(0.02)


@step(version="1", setup=load)
def size(page, context):
    """The page's size in pixels."""
    width, height = page.image.size
    if "slow" in page.page_id:
        note("at.log", page.page_id, str(os.getppid()))
        wait_for("go")
    if "fails" in page.page_id:
        raise ValueError("this page has no size")
    if "kills" in page.page_id:
        os._exit(9)
    if "crashes" in page.page_id and not (HERE / "mended").exists():
        note("at.log", page.page_id, str(os.getppid()))
        os.kill(os.getppid(), 9)
        time.sleep(60)
    note("ran.log", "size", page.page_id)
    return {{"width": width, "height": height}}


def area(page, context):
    """Width times height, from the step before."""
    need = context.needs["size"]
    note("ran.log", "area", page.page_id)
    return {{"area": need["width"] * need["height"], "text": "text of " + page.page_id}}


def words(page, context):
    """How many words the text has."""
    note("ran.log", "words", page.page_id)
    return {{"words": len(context.needs["area"]["text"].split())}}
'''


@dataclass(frozen=True)
class JobArchive(Archive):
    """An archive whose recipe `letters` has `size` and `area` at `place`, and `words` here."""

    place: str = "slurm"

    def write_project(
        self,
        settings: Mapping[str, Any] | None,
        *,
        batch_size: int = 500,
        limits: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Replaces the project's settings; JSON is YAML."""
        places: dict[str, Any] = {"local": {"workers": 1}}
        if settings is not None:
            places[self.place] = dict(settings)
        project = {
            "name": "test",
            "pages_may_leave": True,
            "sources": {"letters": {"root": "pages", "batch_size": batch_size}},
            "places": places,
            "limits": {"inline_wait": 1, "poll_seconds": 0.2, **(limits or {})},
            **more,
        }
        (self.folder / "project.yaml").write_text(json.dumps(project))

    def write_recipe(self, steps: Sequence[Mapping[str, Any]], **more: Any) -> None:
        """Replaces the recipe."""
        recipe = {
            "recipe": "letters",
            "source": "letters",
            "consent": "pages_may_leave",
            "steps": list(steps),
            **more,
        }
        (self.folder / "recipes" / "letters.yaml").write_text(json.dumps(recipe))

    @contextmanager
    def engine(self) -> Generator[Engine]:
        """The engine over the project as its files stand now."""
        with open_engine(load_project(self.folder)) as engine:
            yield engine

    def at(self) -> list[tuple[str, int]]:
        """The slow pages that were begun, and the process that is above their worker."""
        log = self.folder / "at.log"
        lines = log.read_text().split("\n") if log.exists() else []
        return [(line.split("\t")[0], int(line.split("\t")[1])) for line in lines if line]

    def go(self) -> None:
        """Lets the slow pages go on."""
        (self.folder / "go").touch()

    def loads_by_task(self) -> Counter[str]:
        """How often the model was loaded, by the index of the array's task."""
        return Counter(line.split("\t")[0] for line in self.loads())


def chain(place: str) -> list[dict[str, Any]]:
    """Two steps at the place and one here."""
    return [
        {"name": "size", "run": "job_steps:size", "place": place},
        {"name": "area", "run": "job_steps:area", "place": place, "needs": ["size"]},
        {"name": "words", "run": "job_steps:words", "needs": ["area"]},
    ]


def slurm_place(site: SlurmSite, folder: Path, **more: Any) -> dict[str, Any]:
    """What a project says of the site; over ssh where it has a login."""
    here = {
        "scratch": str(folder / "scratch"),
        "runner": RUNNER,
        "settle_seconds": 1,
        "mem": "400M",
    }
    if site.ssh_config is not None:
        here |= {"host": HOST, "ssh_config": str(site.ssh_config)}
    return {**here, **more}


def make_job_archive(
    folder: Path,
    settings: Mapping[str, Any] | None,
    names: Sequence[str] = (),
    *,
    pages: int = 6,
    place: str = "slurm",
    batch_size: int = 500,
    limits: Mapping[str, Any] | None = None,
    steps: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> JobArchive:
    """Pages `a/0.png` and on in one folder, or those named. No settings: all steps run here."""
    for name in ("recipes", "pages"):
        (folder / name).mkdir(parents=True)
    (folder / "job_steps.py").write_text(CODE.format(here=str(folder)))
    archive = JobArchive(folder, place)
    archive.write_project(settings, batch_size=batch_size, limits=limits)
    archive.write_recipe(steps or chain("local" if settings is None else place), **more)
    archive.draw(names or [f"a/{number}.png" for number in range(pages)])
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def first_stage(engine: Engine) -> Stage:
    """The stage at the place."""
    return stages_of(engine.project.recipe("letters"))[0]


def run_all(engine: Engine, batch: str = BATCH) -> BatchView:
    """Runs every stage of the batch to its end."""
    recipe = engine.project.recipe("letters")
    for stage in stages_of(recipe):
        run_stage(engine, stage, batch, poll_seconds=0.2)
    return look(engine, recipe, batch)


def advance_until(engine: Engine, landed: int, batch: str = BATCH, calls: int = 600) -> Seen:
    """Advances the first stage until so many of its rows have landed in all."""
    stage = first_stage(engine)
    seen = Seen(None)
    for _ in range(calls):
        seen = advance(engine, stage, batch)
        rows = sum(len(engine.library.landed("letters", step.name, batch)) for step in stage.steps)
        if rows >= landed:
            return seen
        engine.place(stage.place).wait(0.2)
    raise AssertionError(f"{landed} rows did not land; {seen}")


def values_of(engine: Engine, step: str = "area", batch: str = BATCH) -> dict[str, Any]:
    """The landed values of a step by page id."""
    table = engine.library.table("letters", step, batch, ["page_id", "value"])
    return {row["page_id"]: json.loads(row["value"]) for row in table.to_pylist()}


class Arrays:
    """The jobs that a site was sent since this was made, each array once."""

    def __init__(self, site: SlurmSite) -> None:
        self._site = site
        self._before = self._known()

    def __len__(self) -> int:
        return len(self._known() - self._before)

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return sorted(each.split()[1] for each in self._known() - self._before)

    def _known(self) -> set[str]:
        return set(self._site.ask("squeue", "-h", "-t", "all", "-o", "%F %j").splitlines())
