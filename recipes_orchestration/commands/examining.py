"""The work of `recipes doctor`: each thing that a run needs, looked at for real."""

from __future__ import annotations

import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import typer

from ..engine.opening import open_place
from ..errors import PlaceError, RecipesError
from ..ledger.database import open_ledger
from ..library.library import Library
from ..pages.naming import shown
from ..pages.source import Source
from ..places.place import Place, Sought
from ..places.slurm.slurm_place import SlurmPlace
from ..project import Project, load_project
from ..recipe import LOCAL
from ..steps.extras import missing
from ..steps.registry import load_operation
from .exits import ALL_RIGHT, NOT_COMPLETE
from .output import Output

__all__ = ["Finding", "examine"]

_PYTHON = ((3, 11), (3, 14))
_LITTLE_DISK = 2_000_000_000
_SLOW_DAEMON_SECONDS = 300.0
_NO_TASK = f"recipes-doctor-{0:032x}"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `ok` is None for what is only worth knowing."""

    about: str
    ok: bool | None
    words: str


def examine(folder: Path | None, *, as_json: bool) -> None:
    """Prints a sentence for each thing, and ends with 1 when one of them is wrong."""
    output = Output(as_json=as_json)
    findings: list[Finding] = []
    for finding in _findings(folder):
        findings.append(finding)
        mark = {True: "ok", False: "WRONG", None: "note"}[finding.ok]
        output.line(f"{mark:5}  {finding.about}: {shown(finding.words)}")
    wrong = sum(1 for finding in findings if finding.ok is False)
    output.line("Everything is all right." if not wrong else f"{wrong} wrong.")
    output.document(
        {
            "ok": not wrong,
            "findings": [
                {"about": each.about, "ok": each.ok, "words": each.words} for each in findings
            ],
        }
    )
    raise typer.Exit(NOT_COMPLETE if wrong else ALL_RIGHT)


def _findings(folder: Path | None) -> Iterator[Finding]:
    yield _python()
    try:
        project = load_project(folder)
    except RecipesError as error:
        yield Finding("project", False, "; ".join(str(error).split("\n")))
        return
    recipes = ", ".join(project.recipes)
    yield Finding("project", True, f"{project.name} in {project.folder} with recipes {recipes}.")
    yield from _models(project)
    yield from _places(project)
    for name in project.sources:
        yield _looked(f"source {name}", lambda name=name: _source(project, name))
    yield _looked("library", lambda: _library(project))
    yield _looked("ledger", lambda: _ledger(project))
    yield from _dagster(project)
    yield from _disks(project)


def _looked(about: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(about, True, look())
    except RecipesError as error:
        return Finding(about, False, " ".join(str(error).split()))


def _python() -> Finding:
    lowest, beyond = _PYTHON
    here = ".".join(map(str, sys.version_info[:3]))
    if lowest <= sys.version_info[:2] < beyond:
        return Finding("python", True, f"{here} on {sys.platform}.")
    wanted = f"{lowest[0]}.{lowest[1]} to {beyond[0]}.{beyond[1] - 1}"
    return Finding("python", False, f"{here}; make the environment anew with Python {wanted}.")


def _models(project: Project) -> Iterator[Finding]:
    runs = {
        (step.run, step.provider is not None)
        for recipe in project.recipes.values()
        for step in recipe.steps
        if not project.takes_jobs(step.place)  # there others are installed
    }
    for run, on_model in sorted(runs):
        sentence = missing(load_operation(run, on_model))
        yield Finding(f"step {run}", sentence is None, sentence or "can be loaded.")


def _places(project: Project) -> Iterator[Finding]:
    """The places elsewhere that recipes use: their SDK, their key, and whether they answer."""
    used = {
        step.place
        for recipe in project.recipes.values()
        for step in recipe.steps
        if step.place != LOCAL
    }
    for name in sorted(used):
        yield _looked(f"place {name}", lambda name=name: _place(project, name))


def _place(project: Project, name: str) -> str:
    place = open_place(project, name)
    try:
        words = _answer(place, takes_jobs=project.takes_jobs(name))
    finally:
        place.close()
    with open_ledger(project.ledger_url) as ledger:
        pause = ledger.pauses.of(name)
    if pause is not None:
        raise PlaceError(f"It answers, but is paused: {pause.words} Run: recipes resume {name}")
    return words


def _answer(place: Place, *, takes_jobs: bool) -> str:
    """What the place says to a question that costs nothing and needs a key that is right."""
    if isinstance(place, SlurmPlace):
        return f"{place.check()}."
    if takes_jobs:
        place.find(Sought(_NO_TASK))
        return "it answers."
    place.statuses(["recipes-doctor"])
    return "it answers and takes the key."


def _source(project: Project, name: str) -> str:
    settings = project.source(name)
    source = Source(name, settings.root, settings.storage_options, settings.hidden)
    first = next(iter(source.walk()), None)
    if first is None or (not first.files and not first.subfolders):
        return f"{settings.root} can be listed and is empty; put pages there."
    return f"{settings.root} can be listed."


def _library(project: Project) -> str:
    started = time.perf_counter()
    Library(project.library, project.library_storage_options).probe()
    return f"{project.library} can be written ({time.perf_counter() - started:.2f} s)."


def _ledger(project: Project) -> str:
    ledger = open_ledger(project.ledger_url)
    try:
        opened = len(ledger.tasks.open())
        words = f"{ledger.url_shown} is up to date, with {opened} open tasks."
    finally:
        ledger.close()
    if project.ledger_url.startswith("sqlite"):
        words += (
            f" SQLite is for processes on one machine ({socket.gethostname()}); for several "
            "machines set RECIPES_LEDGER_URL to a PostgreSQL database."
        )
    return words


def _dagster(project: Project) -> Iterator[Finding]:
    from ..orchestration.instance import open_instance, told_in_a_sentence

    try:
        with (
            open_instance(project.folder) as instance,
            told_in_a_sentence("Its storage cannot be read", "Run: dagster instance migrate"),
        ):
            runs = instance.get_runs_count()
            where = instance.root_directory
            yield Finding(
                "dagster", True, f"{version('dagster')}, its instance in {where}, {runs} runs."
            )
            beats = instance.get_daemon_heartbeats()
            newest = max((beat.timestamp for beat in beats.values()), default=None)
            alive = newest is not None and time.time() - newest < _SLOW_DAEMON_SECONDS
            yield Finding(
                "dagster daemon",
                True if alive else None,
                "is alive."
                if alive
                else "is not running: sensors, schedules and backfills wait for `recipes dev`.",
            )
    except RecipesError as error:
        yield Finding("dagster", False, " ".join(str(error).split()))


def _disks(project: Project) -> Iterator[Finding]:
    folders = {"project": project.folder}
    if "://" not in project.library:
        folders["library"] = Path(project.library)
    for about, folder in folders.items():
        there = next(each for each in (folder, *folder.parents) if each.exists())
        free = shutil.disk_usage(there).free
        words = f"{free / 1e9:,.1f} GB free for the {about} in {folder}"
        if free < _LITTLE_DISK:
            yield Finding("disk", False, f"{words}; make room before a run: 2 GB at least.")
        else:
            yield Finding("disk", True, f"{words}.")
