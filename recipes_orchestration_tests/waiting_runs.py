"""Runs that wait for a place elsewhere, and what Dagster's daemon does with them, step by step."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType

from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.ledger.tasks import TaskRow
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.instance import DEFAULT_YAML
from recipes_orchestration.orchestration.recording import record_pages
from recipes_orchestration.orchestration.run_tags import (
    AWAIT,
    BACKFILL_ID_TAG,
    PARENT_RUN_ID_TAG,
    PARTITION_NAME_TAG,
)
from recipes_orchestration.places.place import Chunk, Package, Sent, Sought, Standing, State
from recipes_orchestration.runner.work import TaskSpec

from .archive import Archive, find_pages, make_archive

RECIPE = """\
recipe: measure
source: letters
consent: pages_may_leave
steps:
  - {name: size, run: "counting_steps:together"}
  - {name: ask, run: prompt, place: anthropic, model: claude-haiku-4-5, prompt: ask.md,
     max_tokens: 100, needs: [size]}
  - {name: after, run: "counting_steps:together", needs: [ask]}
"""
PROMPT = "What is on the page {size.name}?\n"
STEPS = ("size", "ask", "after")


def make_cloud_archive(folder: Path, names: Sequence[str], **settings: object) -> Archive:
    """An archive with a cloud step between two local ones; `settings` are of the cloud place."""
    limits = {"inline_wait": settings.pop("inline_wait", 0.0), "poll_seconds": 0.2}
    archive = make_archive(folder, names, limits=limits)
    cloud = ", ".join(f"{name}: {value}" for name, value in {"batch_from": 1, **settings}.items())
    project = archive.folder / "project.yaml"
    project.write_text(
        "pages_may_leave: true\n"
        + project.read_text().replace("places:\n", f"places:\n  anthropic: {{{cloud}}}\n")
    )
    (archive.folder / "recipes" / "measure.yaml").write_text(RECIPE)
    (archive.folder / "ask.md").write_text(PROMPT)
    return archive


@contextmanager
def queueing_instance(folder: Path, yaml: str | None = None) -> Generator[dg.DagsterInstance]:
    """An instance with a run queue, as `dagster dev` has one."""
    folder.mkdir()
    if yaml is None:
        shutil.copyfile(DEFAULT_YAML, folder / "dagster.yaml")
    else:
        (folder / "dagster.yaml").write_text(yaml)
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


@dataclass
class RemotePlace:
    """A place elsewhere of which the test says how its tasks stand.

    In place of a provider, because what is tested is what the sensor does with its answers.
    """

    name: str = "anthropic"
    max_open: int | None = 10
    settle_seconds: float = 0.0
    overdue_seconds: float | None = None
    keeps_seconds: float | None = None
    states: dict[str, State] = field(default_factory=dict[str, State])
    asked: list[int] = field(default_factory=list[int])
    cancelled: list[str] = field(default_factory=list[str])

    def takes_slot(self, pages: int, *, now: bool) -> bool:
        return True

    def pack(self, spec: TaskSpec, *, now: bool = False) -> Iterator[Sequence[Package]]:
        yield [Package(tuple(page.page_id for page in spec.pages), slot=True)]

    def discard(self, package: Package) -> None:
        pass

    def submit(self, names: Sequence[str], packages: Sequence[Package]) -> Sequence[str]:
        self.states |= {f"id-{name}": State.RUNNING for name in names}
        return [f"id-{name}" for name in names]

    def find(self, sought: Sought) -> str | None:
        return None

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, Standing]:
        self.asked.append(len(remote_ids))
        return {id: Standing(self.states.get(id, State.RUNNING)) for id in remote_ids}

    def results(self, sent: Sent) -> Iterator[Chunk]:
        yield from ()

    def bill(self, remote_id: str) -> None:
        return None

    def report(self, remote_id: str) -> None:
        return None

    def cancel(self, remote_id: str) -> None:
        self.cancelled.append(remote_id)

    def forget(self, remote_id: str) -> None:
        pass

    def ends_here(self, remote_id: str | None) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Bench:
    """An archive, its definitions and an instance: runs are put as they would be found."""

    archive: Archive
    instance: dg.DagsterInstance
    defs: dg.Definitions
    cursor: str | None = None

    @classmethod
    def of(cls, archive: Archive, instance: dg.DagsterInstance) -> Bench:
        project = archive.project()
        with open_engine(project) as engine:
            record_pages(engine, instance, "letters", find_pages(engine).batches)
        return cls(archive, instance, project_definitions(project))

    @contextmanager
    def engine(self) -> Generator[Engine]:
        with open_engine(self.archive.project()) as engine:
            yield engine

    def run(
        self,
        batch: str,
        status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED,
        *,
        steps: Sequence[str] = STEPS,
        tags: Mapping[str, str] | None = None,
    ) -> dg.DagsterRun:
        """A run of the steps as the instance would show it."""
        keys = {step_key("measure", step) for step in steps}
        job = self.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=keys)
        return self.instance.create_run_for_job(
            job,
            status=status,
            asset_selection=keys,
            tags={PARTITION_NAME_TAG: batch, BACKFILL_ID_TAG: "bf", **(tags or {})},
        )

    def task(
        self, batch: str, *, owner: str = "", slot: bool = True, remote_id: str | None = None
    ) -> TaskRow:
        """A task of the cloud step that a process sent which has died."""
        with self.engine() as engine:
            view = look(engine, engine.project.recipe("measure"), batch, STEPS)
            keys = {view.steps["ask"].keys[page_id] for page_id in view.pages}
            task = engine.ledger.tasks.prepare(
                name=f"ask-{batch.replace('/', '-')}",
                recipe="measure",
                stage="ask",
                source="letters",
                batch=batch,
                place="anthropic",
                attempt=1,
                fingerprints={"ask": view.steps["ask"].fingerprint},
                pages=[(page_id, page.sha256) for page_id, page in view.pages.items()],
                claims=keys,
                owner=owner or f"{dead_process()}/abc",
                slot=slot,
            )
            assert task is not None
            engine.ledger.tasks.sent(task.id, remote_id or f"id-{batch}")
            return task

    def tick(self) -> dg.SensorResult:
        """One tick of the adopt sensor; its cursor is kept for the next one."""
        context = dg.build_sensor_context(
            instance=self.instance, definitions=self.defs, cursor=self.cursor
        )
        result = self.defs.resolve_sensor_def("recipes_adopt")(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        return result

    def queue(self, result: dg.SensorResult) -> list[dg.DagsterRun]:
        """Creates the requested runs in the queue, as Dagster's daemon would."""
        queued: list[dg.DagsterRun] = []
        for request in result.run_requests or []:
            keys = set(request.asset_selection or ())
            job = self.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=keys)
            queued.append(
                self.instance.create_run_for_job(
                    job,
                    status=dg.DagsterRunStatus.NOT_STARTED,
                    asset_selection=keys,
                    tags={**request.tags, PARTITION_NAME_TAG: request.partition_key or ""},
                )
            )
        return queued

    def state(self, run: dg.DagsterRun) -> dg.DagsterRunStatus:
        return self.again(run).status

    def again(self, run: dg.DagsterRun) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run.run_id)
        assert found is not None
        return found

    def words(self, run: dg.DagsterRun) -> str:
        """What was said in the run's log."""
        entries = self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
        return "\n".join(
            entry.dagster_event.message or "" for entry in entries if entry.dagster_event
        )

    def continuation_of(self, run: dg.DagsterRun) -> dg.DagsterRun | None:
        found = self.instance.get_runs(
            dg.RunsFilter(tags={PARENT_RUN_ID_TAG: run.run_id, AWAIT: ["open", "ended"]})
        )
        return found[0] if found else None

    def materialized(self, run: dg.DagsterRun, step: str, batch: str) -> None:
        """Writes down that the run has materialized the step."""
        event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
            job_name=run.job_name,
            event_specific_data=_materialized(step, batch),
        )
        self.instance.report_dagster_event(event, run_id=run.run_id)

    def cancel(self, run: dg.DagsterRun) -> None:
        self.instance.report_run_canceled(run)


def _materialized(step: str, batch: str) -> Any:
    from dagster._core.events import StepMaterializationData

    return StepMaterializationData(
        dg.AssetMaterialization(step_key("measure", step), partition=batch)
    )


def dead_process() -> str:
    """Names a process of this machine that is not there any more."""
    from recipes_orchestration.places.processes import this_process

    machine = this_process().rpartition(":")[0].rpartition(":")[0]
    unused = next(pid for pid in range(4_000_000, 4_194_304) if not psutil.pid_exists(pid))
    return f"{machine}:{unused}:1.00"


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> RemotePlace:
    """The place `anthropic`, told by the test how its tasks stand."""
    from recipes_orchestration.engine import engine as engine_module

    place = RemotePlace()
    real = engine_module.open_place
    monkeypatch.setattr(
        engine_module,
        "open_place",
        lambda project, name: place if name == "anthropic" else real(project, name),
    )
    return place


@pytest.fixture(scope="module")
def waiting_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive that was discovered, with its instance: made once, since that takes seconds."""
    folder = tmp_path_factory.mktemp("waiting")
    archive = make_cloud_archive(folder / "project", ["a/p1.png", "a/p2.png", "b/p1.png"])
    before = list(sys.path)
    with queueing_instance(folder / "home") as instance:
        Bench.of(archive, instance)
    sys.path[:] = before
    return folder


@pytest.fixture
def bench(waiting_template: Path, tmp_path: Path, remote: RemotePlace) -> Iterator[Bench]:
    shutil.copytree(waiting_template, tmp_path, dirs_exist_ok=True)
    archive = Archive(tmp_path / "project")
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        yield Bench(archive, instance, project_definitions(archive.project()))
