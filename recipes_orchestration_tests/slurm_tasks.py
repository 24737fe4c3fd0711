"""Tasks sent to a real Slurm as the engine would send them, and what became of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from recipes_orchestration.places.place import Chunk, Package, Sent, Sought, Standing, State
from recipes_orchestration.places.slurm.shell import LocalShell, Shell
from recipes_orchestration.places.slurm.slurm_place import SlurmPlace, SlurmRules
from recipes_orchestration.places.slurm.ssh_shell import SshShell
from recipes_orchestration.places.task_folders.far_folders import Over
from recipes_orchestration.recipe import Step
from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite
from recipes_orchestration.runner.work import Outcome, PageWork, TaskSpec

from .packed_work import jpeg, spec_of, works_of

# A busy machine takes a minute for what takes a second on an idle one.
PATIENCE = 180.0

STEP = Step("width", "cluster_steps:width", "1")
# What a page is called says what becomes of the task that works on it.
STEPS = """
from __future__ import annotations

import os
import time

from recipes_orchestration.steps.step import step


def load(params):
    if params.get("cannot_load"):
        raise OSError("the weights are not there")


@step(version="1", setup=load)
def width(page, context):
    if "slow" in page.page_id:
        time.sleep(900)
    if "bad" in page.page_id:
        raise ValueError("no width")
    return {"width": page.image.width}
"""


class NoAnswers:
    def keep(self, lines: object) -> None:
        raise AssertionError("a cluster's answers are in its task folders")

    def kept(self) -> bool:
        return False

    def lines(self) -> Generator[bytes]:
        yield from ()


@dataclass
class Cluster:
    """A place at a site, with a project folder of its own."""

    site: SlurmSite
    folder: Path
    rules: SlurmRules
    ssh: bool = False
    name: str = "cluster"
    # Jobs of other tests are in the same queue: each has names of its own.
    array: str = field(default_factory=lambda: f"width-{uuid4().hex}")
    specs: dict[str, TaskSpec] = field(default_factory=dict[str, TaskSpec])
    groups: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    @property
    def scratch(self) -> Path:
        return Path(self.rules.scratch)

    def shell(self) -> Shell:
        if self.ssh:
            return SshShell(self.name, HOST, self.site.ssh_config)
        return LocalShell(self.name)

    def place(self, **rules: Any) -> SlurmPlace:
        """As another process would open it: nothing is remembered."""
        return SlurmPlace(
            self.shell(),
            replace(self.rules, **rules),
            project="archive",
            staging=self.folder / "staging",
        )

    def spec(self, *names: str, step: Step = STEP) -> TaskSpec:
        """A page for each name, of as many pixels as its number says."""
        steps = self.folder / "project" / "cluster_steps.py"
        if not steps.exists():
            steps.parent.mkdir(parents=True)
            steps.write_text(STEPS)
        files = {f"{name}.jpg": jpeg(40 + n, (60 + n, 40)) for n, name in enumerate(names)}
        works = works_of(self.folder / "scans", files, [step.name])
        return spec_of(
            self.folder / "scans",
            works,
            (step,),
            str(steps.parent),
            folder="letters/1891/0001",
            page_timeout=300.0,
        )

    def send(self, place: SlurmPlace, spec: TaskSpec, array: str = "") -> list[str]:
        """Sends the work as one array; the tasks' remote ids."""
        array = array or self.array
        with closing(place.pack(spec)) as groups:  # pyright: ignore[reportArgumentType]
            (packages,) = [group for group in groups if self._keeps(group, spec, array)]
            return list(place.submit(names_of(array, packages), packages))

    def _keeps(self, group: Sequence[Package], spec: TaskSpec, array: str) -> bool:
        pages: dict[str, PageWork] = {page.page_id: page for page in spec.pages}
        for name, package in zip(names_of(array, group), group, strict=True):
            sent = tuple(pages[page_id] for page_id in package.pages)
            self.specs[name] = replace(spec, pages=sent)
            self.groups[name] = package.group
        return True

    def sent(self, remote_id: str, *, stopped: str | None = None) -> Sent:
        index = remote_id.partition("/")[0].partition("_")[2]
        array = remote_id.rpartition("/")[2]
        name = f"{array}_{index}" if f"{array}_{index}" in self.specs else array
        return Sent(
            name=name,
            remote_id=remote_id,
            load=lambda: self.specs[name],
            answers=NoAnswers(),
            group=self.groups[name],
            sent_at=datetime.now(UTC),
            stopped=stopped,
        )

    def outcomes(self, place: SlurmPlace, remote_id: str, **more: Any) -> dict[str, Outcome]:
        """The outcome of each page, by the last part of its id."""
        chunks: list[Chunk] = list(place.results(self.sent(remote_id, **more)))
        assert [chunk.part for chunk in chunks] == list(range(1, len(chunks) + 1))
        found = [outcome for chunk in chunks for outcome in chunk.outcomes]
        assert len({each.page_id for each in found}) == len(found)
        return {each.page_id.removesuffix(".jpg"): each for each in found}

    def kinds(self, place: SlurmPlace, remote_id: str, **more: Any) -> dict[str, str]:
        """`landed` or the kind of failure of each page."""
        outcomes = self.outcomes(place, remote_id, **more)
        return {
            page: "landed" if each.failure is None else str(each.failure.kind)
            for page, each in outcomes.items()
        }

    def clear(self, place: SlurmPlace, *remote_ids: str) -> list[str]:
        """Lets the place remove what lies of tasks; the names of those of which nothing does."""
        sent = [self.sent(remote_id) for remote_id in remote_ids]
        return list(place.clear([Over(each.name, each.group) for each in sent]))

    def results_file(self, remote_id: str) -> Path:
        """Where a task writes its results on scratch."""
        return self.task_folder(remote_id) / "out" / "results.jsonl"

    def task_folder(self, remote_id: str) -> Path:
        element, batch, array = remote_id.split("/")
        return self.scratch / "archive" / batch / array / element.partition("_")[2]

    def jobs(self) -> list[str]:
        """The elements of the array in the queue, each with its state."""
        told = self.site.ask("squeue", "-h", "-r", "-t", "all", "-n", self.array, "-o", "%K %T")
        return sorted(line for line in told.split("\n") if line)


def cluster(site: SlurmSite, folder: Path, *, ssh: bool = False, **rules: Any) -> Cluster:
    """A cluster whose runner is this checkout's; nothing is waited for longer than needed."""
    given: dict[str, Any] = {
        "scratch": str(folder / "scratch"),
        "runner": f"{sys.executable} -m recipes_orchestration.runner.main",
        "settle_seconds": 0.0,
        "mem": "400M",
        "pages_per_task": 2,
        **rules,
    }
    return Cluster(site, folder, SlurmRules(**given), ssh)


def names_of(array: str, packages: Sequence[Package]) -> list[str]:
    """Names tasks as the engine does."""
    if len(packages) == 1:
        return [array]
    return [f"{array}_{index}" for index in range(len(packages))]


def sought(name: str) -> Sought:
    return Sought(name=name, slot=True)


def settled(
    place: SlurmPlace,
    remote_ids: Sequence[str],
    until: Callable[[Standing], bool] = lambda standing: standing.state is not State.RUNNING,
    seconds: float = PATIENCE,
) -> dict[str, Standing]:
    """How the tasks stand once all are as they are waited for."""
    deadline = time.monotonic() + seconds
    while True:
        standings = dict(place.statuses(remote_ids))
        if all(until(each) for each in standings.values()):
            return standings
        assert time.monotonic() < deadline, standings
        time.sleep(0.2)


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def forget_all_jobs(site: SlurmSite) -> None:
    """The controller starts with no jobs, as after MinJobAge."""
    site.kill("slurmctld")
    for name in ("job_state", "job_state.old"):
        (site.folder / "state" / name).unlink(missing_ok=True)
    site.up()
    assert site.ask("squeue", "-h", "-t", "all") == ""
