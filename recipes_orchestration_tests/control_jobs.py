"""The cells of one state at a place that runs jobs: played side by side, since jobs take long.

Every decision has a folder of five pages, which is one batch and one job. Each job does two pages
and stays at the third one until the test lets it go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from recipes_orchestration.engine.advance import Seen
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.engine.stopping import stop_tasks
from recipes_orchestration.errors import HeldBack
from recipes_orchestration.ledger.tasks import TaskRow, TaskState

from .cloud_archive import advance_once
from .cloud_landing import rows_of
from .control_decisions import DECIDE, ON_HELD, hold_page
from .control_table import JOBS, End
from .job_archive import JobArchive, make_job_archive

__all__ = ["Came", "JobSite", "check", "play"]

PAGES = ("0.png", "1.png", "2-stays.png", "3.png", "4.png")
PATIENCE = 120.0
STEP = '''
import os
import time
from pathlib import Path

HERE = Path({here!r})


def read(page, context):
    """Notes each page, and stays at some until the test makes a file."""
    folder = page.page_id.split("/")[0]
    if "stays" in page.page_id:
        (HERE / (folder + ".at")).touch()
        while not (HERE / (folder + ".go")).exists():
            time.sleep(0.05)
    handle = os.open(HERE / "ran.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, ("read\\t" + page.page_id + "\\n").encode())
    os.close(handle)
    return {{"text": page.page_id}}
'''


class JobSite(Protocol):
    """A place that runs jobs, as a test has it."""

    place: str

    def settings(self, folder: Path) -> Mapping[str, Any]:
        """What a project says of it."""
        ...

    def losing_replies(self, jobs: int) -> AbstractContextManager[None]:
        """So many jobs are taken, and the place says that it failed."""
        ...

    def slow_to_end(self) -> AbstractContextManager[None]:
        """While it lasts jobs that are to end go on, and end afterwards."""
        ...

    def jobs(self) -> Sequence[str]:
        """The names of the tasks that it has taken, in their order, once for each job."""
        ...


@dataclass(frozen=True)
class Came:
    """What a cell came to."""

    end: End
    seen: Seen
    refused: str
    held: list[str]
    by_hand: list[tuple[str, str]]
    complete: bool
    open: int
    ran: list[int]
    failures: set[str]
    bookings: int


@dataclass
class _Cell:
    decision: str
    refused: str = ""
    seen: Seen | None = None
    held: str = field(init=False)
    batch: str = field(init=False)
    folder: str = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.decision.replace(" ", "-")
        self.batch = f"{self.folder}/0001"
        self.held = f"{self.folder}/{PAGES[-1]}"


def play(site: JobSite, folder: Path, state: str) -> dict[str, Came]:
    """Brings a job for each decision into the state, decides, and lets all come to rest."""
    cells = [_Cell(decision) for decision in JOBS]
    archive = _archive(site, folder, cells)
    with archive.engine() as engine:
        for cell in cells:
            if cell.decision in ON_HELD:
                hold_page(engine, cell.batch, cell.held)
        if state == "cancelling":
            with site.slow_to_end():
                _come_to(engine, archive, site, state, cells)
                for cell in cells:
                    _decide(engine, cell)
                    # While it goes on, so that it is known what goes beside it.
                    cell.seen = advance_once(engine, batch=cell.batch)
        else:
            _come_to(engine, archive, site, state, cells)
            for cell in cells:
                _decide(engine, cell)
        _settle(engine, archive, cells)
        return {cell.decision: _came(engine, archive, site, cell) for cell in cells}


def _archive(site: JobSite, folder: Path, cells: Sequence[_Cell]) -> JobArchive:
    names = [f"{cell.folder}/{page}" for cell in cells for page in PAGES]
    step = {"name": "read", "run": "control_steps:read", "place": site.place}
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "control_steps.py").write_text(STEP.format(here=str(project)))
    return make_job_archive(
        project, site.settings(folder), names, place=site.place, steps=[step], max_held=0.0
    )


def _come_to(
    engine: Engine, archive: JobArchive, site: JobSite, state: str, cells: Sequence[_Cell]
) -> None:
    if state == "none":
        return
    if state == "preparing":
        with site.losing_replies(len(cells)):
            tasks = list(_sent(engine, cells))
        assert {(task.state, task.remote_id) for task in tasks} == {(TaskState.preparing, None)}
    else:
        tasks = list(_sent(engine, cells))
    for cell in cells:
        _until((archive.folder / f"{cell.folder}.at").exists)
    if state == "cancelling":
        assert stop_tasks(engine, tasks) == []
    elif state in ("ended", "landed"):
        for cell in cells:
            _go(archive, cell)
        _until(lambda: all(each.ended for each in poll_open(engine).values()))
    if state == "landed":
        for cell in cells:
            assert advance_once(engine, batch=cell.batch).landed > 0


def _sent(engine: Engine, cells: Sequence[_Cell]) -> Iterator[TaskRow]:
    for cell in cells:
        advance_once(engine, batch=cell.batch)
        (task,) = engine.ledger.tasks.open(batch=cell.batch)
        yield task


def _decide(engine: Engine, cell: _Cell) -> None:
    try:
        DECIDE[cell.decision](engine, cell.batch, cell.held)
    except HeldBack as error:
        cell.refused = str(error)


def _settle(engine: Engine, archive: JobArchive, cells: Sequence[_Cell]) -> None:
    """Advances all until nothing goes on; jobs go on once nobody wants to end them sooner."""
    until = time.monotonic() + PATIENCE
    left = list(cells)
    while left and time.monotonic() < until:
        for cell in list(left):
            cell.seen = seen = advance_once(engine, batch=cell.batch)
            if seen.at_rest or (seen.person and not seen.open):
                left.remove(cell)
            elif not any(task.stopped for task in engine.ledger.tasks.open(batch=cell.batch)):
                _go(archive, cell)
        time.sleep(0.1)


def _go(archive: JobArchive, cell: _Cell) -> None:
    (archive.folder / f"{cell.folder}.go").touch()


def _came(engine: Engine, archive: JobArchive, site: JobSite, cell: _Cell) -> Came:
    seen = cell.seen
    assert seen is not None
    rows = rows_of(engine, batch=cell.batch)
    known = {name: engine.ledger.tasks.by_name(name) for name in site.jobs()}
    tasks = [task for task in known.values() if task is not None and task.batch == cell.batch]
    by = "" if not seen.person else "stopped" if seen.stopped else "paused"
    failures = engine.ledger.holds.attempts_of("letters", "letters", cell.batch)
    step = look(engine, engine.project.recipe("letters"), cell.batch).steps["read"]
    return Came(
        end=End(
            [len(task.pages) for task in tasks], 0, len(rows), by or (cell.refused and "refused")
        ),
        seen=seen,
        refused=cell.refused,
        held=[page.page_id for page in step.held],
        by_hand=[(row["page_id"], row["note"]) for row in rows if row["model"] == "by hand"],
        complete=step.complete(max_held=0.0),
        open=len(engine.ledger.tasks.open(batch=cell.batch)),
        ran=[times for (_, page), times in archive.ran().items() if page.startswith(cell.folder)],
        failures={page for page, _, _ in failures},
        bookings=sum(each.batch == cell.batch for each in engine.ledger.bookings.all()),
    )


def _until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.1)


def check(came: Came, decision: str, state: str, place: str) -> None:
    """Compares what a cell came to with the table."""
    end = JOBS[decision][state].end
    held = f"{decision.replace(' ', '-')}/{PAGES[-1]}"
    assert came.end == end, came.seen
    assert came.open == 0
    assert came.complete == (end.by in ("", "refused"))
    assert came.held == ([held] if decision == "release" else [])
    by_hand = [(held, "Ada: seen with my eyes")] if decision == "by hand" else []
    assert came.by_hand == by_hand
    # No page is to blame for a decision, and nothing that was done was done again.
    assert came.failures == set(came.held)
    assert came.ran == [1] * (end.landed - len(by_hand))
    if end.by == "refused":
        assert "only a step at a provider has plain calls" in came.refused
        assert f"read goes as jobs at {place}" in came.refused
    elif end.by:
        assert came.seen.waiting is not None
        assert "by Ada" in came.seen.waiting
        assert "a reason" in came.seen.waiting
        assert "recipes resume letters" in came.seen.waiting
