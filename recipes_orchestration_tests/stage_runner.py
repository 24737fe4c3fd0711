"""A process that runs batches of an archive and, when told to, kills itself at a given call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import BatchView, look
from recipes_orchestration.ledger.holds import HoldBook
from recipes_orchestration.ledger.tasks import TaskBook
from recipes_orchestration.library.library import Library
from recipes_orchestration.library.store_local import LocalStore
from recipes_orchestration.places.local import LocalPlace
from recipes_orchestration.project import load_project
from recipes_orchestration.recipe import page_key
from recipes_orchestration.stages import stages_of

from .archive import Archive, environment

KILL_AT = "TEST_KILL_AT"
STEPS = ("size", "area")
_OWNERS: dict[str, Any] = {
    owner.__name__: owner for owner in (TaskBook, HoldBook, Library, LocalStore, LocalPlace)
}


def start(archive: Archive, batches: Sequence[str], kill_at: str = "") -> subprocess.Popen[bytes]:
    """Starts the process; `kill_at` is `<class>.<method>:<before or after>:<which call>`."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(archive.folder), *batches],
        env=environment(archive, **{KILL_AT: kill_at}),
        cwd=Path(__file__).parent.parent,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the process alone, with SIGKILL, and waits until its workers have ended too."""
    try:
        workers = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        workers = []
    process.kill()
    process.wait(20)
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == [], "workers outlived the process that started them"


def run_batches(engine: Engine, batches: Sequence[str]) -> list[BatchView]:
    recipe = engine.project.recipe("measure")
    views: list[BatchView] = []
    for batch in batches:
        for stage in stages_of(recipe):
            run_stage(engine, stage, batch, poll_seconds=0.5)
        views.append(look(engine, recipe, batch))
    return views


def landed_pages(engine: Engine, batches: Sequence[str]) -> set[tuple[str, str]]:
    """(step, page id) of all that has landed under any key."""
    return {
        (step, page_id)
        for batch in batches
        for step in STEPS
        for page_id, _ in engine.library.landed("measure", step, batch)
    }


def check_files(engine: Engine) -> None:
    """Every visible file can be read to its end."""
    for file in Path(engine.project.library).rglob("*.parquet"):
        if not file.name.startswith("."):
            pq.read_table(file)


def check_at_rest(engine: Engine, batches: Sequence[str], held: int = 0) -> None:
    """Every page landed once at every step, and the ledger and the library say the same."""
    recipe = engine.project.recipe("measure")
    check_files(engine)
    assert engine.ledger.tasks.open() == []
    for batch in batches:
        view = look(engine, recipe, batch)
        for name, step in view.steps.items():
            failed = held if name == "area" else 0
            assert (step.landed, len(step.held)) == (step.pages - failed, failed)
            assert engine.ledger.tasks.claimed(step.keys.values()) == {}
            _check_rows(engine, view, name)


def _check_rows(engine: Engine, view: BatchView, step: str) -> None:
    library = engine.library
    table = library.table("measure", step, view.batch, ["page_id", "key", "task"])
    rows = table.to_pylist()
    assert len(rows) == len({row["page_id"] for row in rows}) == view.steps[step].landed
    for row in rows:
        task = engine.ledger.tasks.by_name(row["task"])
        assert task is not None
        # A copied result names the task that computed it, which may be one of another batch.
        sha256 = view.pages[row["page_id"]].sha256
        assert sha256 in dict(task.pages).values()
        assert row["key"] == page_key(task.fingerprints[step], sha256)
    library.compact("measure", step, view.batch)
    folder = Path(library.uri("measure", step, view.batch))
    raw = [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert sorted((row["page_id"], row["key"]) for row in raw) == sorted(
        (row["page_id"], row["key"]) for row in rows
    )


def _arm(point: str) -> None:
    where, moment, which = point.split(":")
    owner, method = where.split(".")
    original = getattr(_OWNERS[owner], method)
    calls = 0

    def deadly(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == int(which) and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = original(*args, **named)
        if calls == int(which):
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(_OWNERS[owner], method, deadly)


def main() -> None:
    if point := os.environ.get(KILL_AT):
        _arm(point)
    with open_engine(load_project(Path(sys.argv[1]))) as engine:
        run_batches(engine, sys.argv[2:])


if __name__ == "__main__":
    main()
