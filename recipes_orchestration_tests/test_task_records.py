"""`recipes tasks --all`: what became of each task, whether its place is asked or not."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.ledger.tables import tasks
from recipes_orchestration.orchestration.events import report_partition
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.stages import stages_of

from .archive import find_pages, make_archive
from .cloud_archive import advance_once, make_cloud_archive, run_all
from .cloud_runner import direct
from .command_runs import recipes
from .test_alerts import earlier, send

pytestmark = pytest.mark.usefixtures("restored_path")


def test_a_landed_batch_is_listed_with_its_times_outcomes_and_cost(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", error_lines=1)
    archive = make_cloud_archive(tmp_path, pages=4, limits={"tries": 1})
    with archive.engine() as engine:
        advance_once(engine)
        earlier(engine.ledger, tasks.c.sent_at, timedelta(hours=3))
        run_all(engine)
        (bill,) = engine.ledger.bookings.all()
    (task,) = recipes(archive, "tasks", "--all", "--json").document["tasks"]
    assert (task["recipe"], task["stage"], task["batch"]) == ("letters", "read", "a/0001")
    assert (task["place"], task["state"]) == ("anthropic", "landed")
    assert {kind: count for kind, count in task["outcomes"].items() if count} == {
        "landed": 3,
        "errored": 1,
    }
    assert (task["tokens_in"], task["tokens_out"]) == (bill.tokens_in, bill.tokens_out)
    assert float(task["cost_usd"]) == float(bill.landed_usd + bill.wasted_usd)
    assert task["waited_hours"] == pytest.approx(3, abs=0.1)
    times = [datetime.fromisoformat(task[f"{at}_at"]) for at in ("prepared", "ended", "landed")]
    assert times == sorted(times)
    table = recipes(archive, "tasks", "--all").out
    assert "3 landed" in table
    assert "letters/read" in table


def test_a_job_is_listed_with_what_its_far_side_told(tmp_path: Path) -> None:
    archive = make_cloud_archive(tmp_path, pages=1)
    seconds = {"min": 0.5, "median": 1.25, "max": 3.0, "total": 9.0}
    step = {"name": "read", "landed": 4, "failed": 0, "seconds": seconds}
    facts = {"steps": [{**step, "model_loads": 1, "load_seconds": 2.5}], "peak_memory_mb": 812.5}
    with archive.engine() as engine:
        id = send(engine, "a/0001")
        engine.ledger.tasks.reported(id, facts)
        engine.ledger.tasks.ended(id)
        engine.ledger.tasks.landed(id)
    (task,) = recipes(archive, "tasks", "letters", "--all", "--json").document["tasks"]
    assert task["steps"] == facts["steps"]
    assert task["peak_memory_mb"] == 812.5
    assert task["cost_usd"] is None
    assert "read 0.5 / 1.2 / 3" in recipes(archive, "tasks", "--all").out


def test_without_any_task_it_says_so(tmp_path: Path) -> None:
    archive = make_cloud_archive(tmp_path, pages=1)
    assert recipes(archive, "tasks", "--all").out == "No task was ever prepared.\n"


def test_a_materialization_says_what_a_page_took(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "project", ["a/1.png", "a/2.png"])
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        recipe = engine.project.recipe("measure")
        (stage,) = stages_of(recipe)
        view = run_stage(engine, stage, "a/0001", poll_seconds=0.1)
        assert view is not None
        metadata = report_partition(engine, view, "size").metadata
    told = [metadata[f"page_seconds_{each}"].value for each in ("min", "median", "max")]
    assert told == sorted(told, key=lambda each: float(str(each)))
