"""A task's record: landed with its results, kept without the ledger, shown in Dagster."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from recipes_orchestration.engine.advance import give_up_all, run_stage
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.look import BatchView, look
from recipes_orchestration.ledger.tables import tasks
from recipes_orchestration.library.library import Library
from recipes_orchestration.orchestration.events import report_partition
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.stages import stages_of

from .archive import Archive, find_pages, make_archive
from .cloud_archive import CloudArchive, advance_once, make_cloud_archive, run_all
from .cloud_runner import direct
from .command_runs import recipes
from .hub_archive import hub_archive
from .job_archive import BATCH, make_job_archive, slurm_place
from .job_archive import run_all as run_jobs
from .test_alerts import earlier

pytestmark = pytest.mark.usefixtures("restored_path")

STEPS = '''
import time

from recipes_orchestration.steps.step import step


def load(params):
    time.sleep(0.02)
    return {"loaded": True}


@step(version="1", setup=load)
def read(page, context):
    """Takes its time."""
    time.sleep(0.01)
    if "fails" in page.page_id:
        raise ValueError("this page cannot be read")
    return {"text": page.page_id}
'''
RECIPE = """\
recipe: measure
source: letters
steps:
  - {name: read, run: "timed_steps:read"}
"""


def local_archive(folder: Path, *names: str) -> Archive:
    archive = make_archive(folder / "project", names or ("a/1.png", "a/2.png", "a/fails.png"))
    project = archive.folder / "project.yaml"
    project.write_text(project.read_text().replace("workers: 2", "workers: 1"))
    (archive.folder / "timed_steps.py").write_text(STEPS)
    (archive.folder / "recipes" / "measure.yaml").write_text(RECIPE)
    return archive


def run_here(engine: Engine, batch: str = "a/0001") -> BatchView:
    find_pages(engine)
    (stage,) = stages_of(engine.project.recipe("measure"))
    run_stage(engine, stage, batch, poll_seconds=0.1)
    return look(engine, engine.project.recipe("measure"), batch)


def said_of(engine: Engine, view: BatchView, step: str = "read") -> dict[str, Any]:
    metadata = report_partition(engine, view, step).metadata
    return {name: value.value for name, value in metadata.items()}


def tasks_of(archive: Archive) -> list[dict[str, Any]]:
    return list(recipes(archive, "tasks", "--all", "--json").document["tasks"])


def estimated(engine: Engine, usd: str) -> None:
    """As if the tasks were thought to cost so much."""
    database = engine.ledger._database  # pyright: ignore[reportPrivateUsage]
    with database.engine.begin() as connection:
        connection.execute(sa.update(tasks).values(estimate_usd=Decimal(usd)))


def test_work_here_tells_seconds_a_page_loads_and_memory_as_jobs_do(tmp_path: Path) -> None:
    archive = local_archive(tmp_path)
    with open_engine(archive.project()) as engine:
        said = said_of(engine, run_here(engine))
    first = tasks_of(archive)[-1]
    (step,) = first["steps"]
    assert (step["name"], step["landed"], step["failed"], step["left"]) == ("read", 2, 1, 0)
    assert 0.01 <= step["seconds"]["min"] <= step["seconds"]["median"] <= step["seconds"]["max"]
    assert step["model_loads"] == 1
    assert 0.02 <= step["load_seconds"] < 5
    assert 20 < first["peak_memory_mb"] < 2_000
    assert first["outcomes"] == {"landed": 2, "failed": 1, "left": 0}
    assert said["model_loads"] >= 1
    assert said["peak_memory_mb"] > 20


def test_a_model_that_stays_loaded_is_not_counted_for_the_next_task(tmp_path: Path) -> None:
    archive = local_archive(tmp_path, "a/1.png", "b/1.png")
    with open_engine(archive.project()) as engine:
        run_here(engine)
        run_here(engine, "b/0001")
    assert [task["steps"][0]["model_loads"] for task in reversed(tasks_of(archive))] == [1, 0]


def test_work_that_was_stopped_leaves_its_record_too(tmp_path: Path) -> None:
    archive = local_archive(tmp_path, *(f"a/{n}.png" for n in range(60)))
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        (stage,) = stages_of(engine.project.recipe("measure"))

        def stop(_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_stage(engine, stage, "a/0001", poll_seconds=0.01, on_landed=stop)
        give_up_all(engine, stage, "a/0001")
        (record,) = engine.library.tasks.of("measure", "read", "a/0001")
    assert (record["state"], record["message"]) == ("dropped", "stopped before it ended")
    assert record["steps"][0]["landed"] > 0


def test_a_materialization_shows_times_waits_outcomes_and_cost_against_the_estimate(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", error_lines=1)
    archive = make_cloud_archive(tmp_path, pages=4, limits={"tries": 1})
    with archive.engine() as engine:
        advance_once(engine)
        earlier(engine.ledger, tasks.c.sent_at, timedelta(hours=3))
        estimated(engine, "0.002")
        said = said_of(engine, run_all(engine))
        (bill,) = engine.ledger.bookings.all()
        (task,) = engine.ledger.records.last()
    cost = float(bill.landed_usd + bill.wasted_usd)
    assert said["waited_hours"] == pytest.approx(3, abs=0.1)
    assert said["outcomes"] == "3 landed, 1 errored"
    assert said["estimate_usd"] == 0.002
    assert said["cost_against_estimate"] == pytest.approx(cost / 0.002, abs=0.001)
    assert said["tasks"] == 1
    assert task.sent_at is not None
    assert said["sent_at"] == pytest.approx(task.sent_at.timestamp(), abs=0.001)
    assert said["prepared_at"] <= said["ended_at"] <= said["landed_at"]
    assert f"| anthropic {task.remote_id} |" in said["task_records"]
    assert "| 3 h 0 min | 3 landed, 1 errored |" in said["task_records"]


def test_without_an_estimate_none_is_shown(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = make_cloud_archive(tmp_path, pages=2)
    with archive.engine() as engine:
        advance_once(engine)
        database = engine.ledger._database  # pyright: ignore[reportPrivateUsage]
        with database.engine.begin() as connection:
            connection.execute(sa.update(tasks).values(estimate_usd=None))
        said = said_of(engine, run_all(engine))
    assert said["tasks"] == 1
    assert not {"estimate_usd", "cost_against_estimate"} & set(said)
    (task,) = tasks_of(archive)
    assert task["estimate_usd"] is None


def test_plain_calls_tell_the_seconds_of_their_pages(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = make_cloud_archive(tmp_path, pages=3)
    with archive.engine() as engine:
        said = said_of(engine, run_all(engine, now=True))
    assert 0 < said["page_seconds_min"] <= said["page_seconds_max"] < 5
    (task,) = tasks_of(archive)
    assert task["steps"][0]["landed"] == 3
    assert task["peak_memory_mb"] is None


@pytest.mark.slow
@pytest.mark.parametrize("where", ["slurm_site", "hub"])
def test_the_record_of_a_job_lies_with_the_results_of_each_of_its_steps(
    request: pytest.FixtureRequest, tmp_path: Path, where: str
) -> None:
    there = request.getfixturevalue(where)
    if where == "hub":
        archive = hub_archive(tmp_path, there, pages=2)
    else:
        archive = make_job_archive(tmp_path / "project", slurm_place(there, tmp_path), pages=2)
    with archive.engine() as engine:
        view = run_jobs(engine)
        records = [engine.library.tasks.of("letters", step, BATCH) for step in ("size", "area")]
        said = said_of(engine, view, "size")
    assert records[0] == records[1]
    (record,) = records[0]
    assert (record["state"], record["place"]) == ("landed", archive.place)
    assert [step["name"] for step in record["steps"]] == ["size", "area"]
    assert all(step["seconds"]["median"] > 0 for step in record["steps"])
    assert record["steps"][0]["model_loads"] == 1
    assert record["peak_memory_mb"] > 0
    assert said["tasks"] == 1
    assert said["waited_hours"] == record["waited_hours"]
    assert said["model_loads"] == 1
    assert said["peak_memory_mb"] == record["peak_memory_mb"]


def lose_ledger(archive: Archive | CloudArchive) -> None:
    for path in (archive.folder / ".recipes").glob("ledger*"):
        path.unlink()


def test_records_outlive_a_lost_ledger(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = make_cloud_archive(tmp_path, pages=3)
    with archive.engine() as engine:
        advance_once(engine)
        estimated(engine, "0.002")
        before = said_of(engine, run_all(engine))
    (known,) = tasks_of(archive)
    lose_ledger(archive)
    with archive.engine() as engine:
        find_pages(engine)
        assert engine.ledger.records.last() == []
        after = said_of(engine, look(engine, engine.project.recipe("letters"), "a/0001"))
    shown = ("tasks", "outcomes", "waited_hours", "estimate_usd", "cost_against_estimate")
    assert {name: after[name] for name in shown} == {name: before[name] for name in shown}
    (found,) = tasks_of(archive)
    assert {**found, "landed_at": ""} == {**known, "landed_at": ""}
    assert recipes(archive, "tasks", "letters", "--all", "--json").document["tasks"] == [found]


def test_a_task_that_both_know_is_listed_once(tmp_path: Path) -> None:
    archive = local_archive(tmp_path, "a/1.png")
    with open_engine(archive.project()) as engine:
        run_here(engine)
        assert len(list(engine.library.tasks.below("measure"))) == 1
    assert len(tasks_of(archive)) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"format": 99}', b"\xff\xfe"])
def test_a_damaged_record_is_passed_over(tmp_path: Path, content: bytes) -> None:
    library = Library(str(tmp_path))
    library.tasks.keep("r", ["s"], "a/0001", "good", {"name": "good"})
    (tmp_path / "r" / "s" / "a" / "0001" / "bad.task.json").write_bytes(content)
    assert library.tasks.of("r", "s", "a/0001") == [{"name": "good"}]
    assert list(library.tasks.below("r")) == [{"name": "good"}]


def test_records_in_an_object_store_are_found_by_batch_and_by_recipe() -> None:
    library = Library("memory://records-of-tasks")
    library.tasks.keep("r", ["s", "t"], "a/0001", "one", {"name": "one"})
    library.tasks.keep("r", ["s"], "b/0001", "two", {"name": "two"})
    assert library.tasks.of("r", "t", "a/0001") == [{"name": "one"}]
    assert library.tasks.of("r", "t", "b/0001") == []
    assert list(library.tasks.below("r", {"two"})) == [{"name": "one"}]
    assert [each["name"] for each in library.tasks.below("r")] == ["one", "two"]
