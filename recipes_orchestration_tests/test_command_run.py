from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import open_engine

from .archive import Archive, make_archive
from .command_runs import recipes, start

pytestmark = pytest.mark.usefixtures("restored_path")

STEPS = ("size", "area")


def slow_archive(folder: Path) -> Archive:
    return make_archive(
        folder,
        [f"{name}/p{n}.png" for name in ("a", "b") for n in range(30)],
        params={"sleep": 0.1},
        limits={"land_every_pages": 5},
    )


def wait_until_ran(archive: Archive, times: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while sum(archive.ran("size").values()) < times:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def open_tasks(archive: Archive) -> int:
    with open_engine(archive.project()) as engine:
        return len(engine.ledger.tasks.open())


def test_a_run_discovers_lands_and_ends_with_the_counts_of_each_folder(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png", "a/2.png", "b/1.png"])
    ran = recipes(archive, "run", "measure", "--json")
    document = ran.document
    assert (ran.code, document["complete"], document["materialized"]) == (0, True, 4)
    assert document["discovered"]["new"] == 3
    stage = document["stages"][0]
    assert (stage["stage"], stage["landed_now"], stage["not_complete"]) == ("size_to_area", 6, [])
    assert {
        folder["folder"]: {step: folder["steps"][step]["landed"] for step in STEPS}
        for folder in stage["folders"]
    } == {"a": {"size": 2, "area": 2}, "b": {"size": 1, "area": 1}}


def test_a_second_run_computes_nothing_and_tells_dagster_nothing(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"])
    recipes(archive, "run", "measure")
    before = archive.ran()
    again = recipes(archive, "run", "measure", "--json")
    assert (again.code, again.document["materialized"]) == (0, 0)
    assert again.document["stages"][0]["landed_now"] == 0
    assert archive.ran() == before


def test_what_was_run_without_dagster_is_told_to_it_by_the_next_run(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"])
    recipes(archive, "run", "measure", "--no-dagster")
    assert not (archive.folder / "dagster_home").exists()
    assert recipes(archive, "run", "measure", "--json").document["materialized"] == 4


def test_a_deleted_dagster_storage_is_rebuilt_from_the_library(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"])
    recipes(archive, "run", "measure")
    shutil.rmtree(archive.folder / "dagster_home")
    # 2 batches at the pages and at 2 steps
    assert recipes(archive, "rebuild-events", "--json").document["rebuilt"] == 6
    assert recipes(archive, "rebuild-events", "--json").document["rebuilt"] == 0


def test_only_the_wanted_folder_step_and_batch_are_run(tmp_path: Path):
    names = [f"a/{n}.png" for n in range(4)] + ["b/1.png"]
    archive = make_archive(tmp_path / "project", names, batch_size=2)
    recipes(archive, "run", "measure", "--no-dagster", "--folder", "a", "--step", "size")
    assert set(archive.ran()) == {("size", f"a/{n}.png") for n in range(4)}
    recipes(archive, "run", "measure", "--no-dagster", "--batch", "a/0002")
    assert set(archive.ran("area")) == {("area", "a/2.png"), ("area", "a/3.png")}
    wrong = recipes(archive, "run", "measure", "--no-dagster", "--batch", "a/0003")
    assert wrong.code == 2
    assert "no batch a/0003" in wrong.err


def test_a_step_whose_need_has_not_landed_says_so_and_ends_with_1(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    ran = recipes(archive, "run", "measure", "--no-dagster", "--step", "area")
    assert ran.code == 1
    assert "area cannot go on before size has landed" in ran.err


def test_a_batch_with_too_many_held_does_not_stop_the_others(tmp_path: Path):
    archive = make_archive(
        tmp_path / "project", ["a/1.png", "b/fails.png", "b/1-fails.png", "c/1.png"]
    )
    ran = recipes(archive, "run", "measure", "--json")
    assert ran.code == 1
    assert ran.document["stages"][0]["not_complete"] == ["b/0001 area"]
    assert archive.ran()["area", "c/1.png"] == 1
    again = recipes(archive, "run", "measure")
    assert again.code == 1
    assert "Not complete: b/0001 area" in again.err


def test_a_batch_whose_files_are_damaged_does_not_stop_the_others(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"])
    recipes(archive, "run", "measure", "--no-dagster")
    file = next((archive.folder / "library" / "measure" / "size" / "a").rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:50])
    archive.draw(["b/2.png"])
    ran = recipes(archive, "run", "measure", "--no-dagster", "--json")
    assert ran.code == 3
    assert list(ran.document["stages"][0]["failed_batches"]) == ["a/0001"]
    assert str(file) in ran.err
    assert archive.ran()["area", "b/2.png"] == 1


def test_a_stage_that_fails_as_a_whole_stops_with_its_sentence(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"])
    steps = archive.folder / "counting_steps.py"
    steps.write_text(
        steps.read_text().replace(
            "note(LOADED", 'raise RuntimeError("no weights")\n    note(LOADED'
        )
    )
    ran = recipes(archive, "run", "measure", "--no-dagster", "--json")
    assert ran.code == 3
    assert "could not be set up: RuntimeError: no weights" in ran.document["stages"][0]["failure"]
    assert "Traceback" not in ran.err
    assert open_tasks(archive) == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_lands_what_is_done_and_the_next_goes_on(tmp_path: Path, how: signal.Signals):
    archive = slow_archive(tmp_path / "project")
    first = start(archive, "run", "measure", "--json", "--no-dagster")
    wait_until_ran(archive, 12, first)
    if how is signal.SIGINT:
        os.killpg(first.pid, how)  # as a terminal does: the workers get it too
    else:
        first.send_signal(how)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130, err
    assert "Traceback" not in err
    assert "Stopping: what is done is landed first" in err
    assert open_tasks(archive) == 0

    status = recipes(archive, "status", "--json").document["recipes"][0]["totals"]
    finished = archive.ran("area").total()
    assert 10 <= status["area"]["landed"] < 60
    # Nothing that was finished is lost, but for a page on its way from each of the workers.
    assert finished - status["area"]["landed"] <= 2

    second = recipes(archive, "run", "measure", "--no-dagster", "--json")
    assert second.code == 0
    assert second.document["stages"][0]["landed_now"] == 120 - sum(
        status[step]["landed"] for step in STEPS
    )
    for step in STEPS:
        ran = archive.ran(step)
        assert len(ran) == 60
        assert sum(ran.values()) - 60 <= 2


@pytest.mark.slow
def test_a_second_ctrl_c_leaves_at_once_and_the_next_run_goes_on(tmp_path: Path):
    archive = slow_archive(tmp_path / "project")
    first = start(archive, "run", "measure", "--no-dagster")
    wait_until_ran(archive, 12, first)
    first.send_signal(signal.SIGINT)
    time.sleep(1.1)
    if first.poll() is None:
        first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    # The signal itself, when it came while Python was already ending; a shell says 130 of both.
    assert first.returncode in (130, -signal.SIGINT), err
    assert recipes(archive, "run", "measure", "--no-dagster").code == 0
    assert all(len(archive.ran(step)) == 60 for step in STEPS)


@pytest.mark.slow
def test_two_runs_at_once_compute_each_page_once(tmp_path: Path):
    archive = slow_archive(tmp_path / "project")
    recipes(archive, "discover", "--no-dagster")
    both = [start(archive, "run", "measure", "--no-dagster", "--no-discover") for _ in range(2)]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert all(set(archive.ran(step).values()) == {1} for step in STEPS)
