"""A stage on a real Slurm, from the engine's side: what lands, what goes again, what is held."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import Seen, advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import PageState, look
from recipes_orchestration.engine.stopping import land_stopped, stop_tasks
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .cloud_runner import start
from .job_archive import (
    BATCH,
    Arrays,
    JobArchive,
    advance_until,
    first_stage,
    make_job_archive,
    run_all,
    slurm_place,
    values_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]


# A model that is found here, where nothing loads it, and not where the task runs.
NO_MODEL = """

def find_model(params):
    raise OSError("there is no model of areas")


area = step(version="1", setup=find_model)(area)
"""


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    """Waits until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


@pytest.fixture
def arrays(slurm_site: SlurmSite) -> Arrays:
    return Arrays(slurm_site)


def elements(site: SlurmSite, state: str) -> list[str]:
    """The array elements in that state, as `<job>_<index>`."""
    return site.ask("squeue", "-h", "-r", "-t", state, "-o", "%F_%K").split()


def an_archive(site: SlurmSite, folder: Path, names: list[str] | None = None, **more: object):
    settings = slurm_place(site, folder, **more)  # pyright: ignore[reportArgumentType]
    return make_job_archive(folder / "project", settings, names or [])


def sent(engine: Engine) -> Seen:
    seen = advance(engine, first_stage(engine), BATCH)
    assert seen.remote
    return seen


def failure_of(engine: Engine, seconds: float = 120) -> str:
    """Why the stage's task failed as a whole."""
    sent(engine)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if failure := advance(engine, first_stage(engine), BATCH).failure:
            return failure
        time.sleep(0.2)
    raise AssertionError("it did not fail")


def advance_to_rest(engine: Engine, calls: int = 600) -> Seen:
    stage = first_stage(engine)
    for _ in range(calls):
        seen = advance(engine, stage, BATCH)
        if seen.at_rest:
            return seen
        engine.place(stage.place).wait(0.2)
    raise AssertionError("it did not come to rest")


def test_a_stage_on_slurm_gives_what_it_gives_here(slurm_site: SlurmSite, tmp_path: Path):
    there = an_archive(slurm_site, tmp_path / "there", pages_per_task=2)
    here = make_job_archive(tmp_path / "here", None)
    with there.engine() as far, here.engine() as near:
        run_all(far)
        run_all(near)
        for step in ("size", "area", "words"):
            assert values_of(far, step) == values_of(near, step)


def test_each_page_is_worked_on_once_and_each_model_loaded_once_a_task(
    slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path, pages_per_task=2)
    with archive.engine() as engine:
        run_all(engine)
    assert set(archive.ran().values()) == {1}
    assert archive.loads_by_task() == {"0": 1, "1": 1, "2": 1}
    assert len(arrays) == 1


def test_running_again_sends_nothing(slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path):
    archive = an_archive(slurm_site, tmp_path)
    with archive.engine() as engine:
        run_all(engine)
    with archive.engine() as engine:
        run_all(engine)
    assert len(arrays) == 1


def test_nothing_is_left_in_the_scratch_folder_when_all_has_landed(
    slurm_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path, pages_per_task=3)
    with archive.engine() as engine:
        run_all(engine)
    left = [each for each in (tmp_path / "scratch").rglob("*") if each.is_file()]
    assert left == []


def test_a_page_that_fails_is_held_and_the_others_land(slurm_site: SlurmSite, tmp_path: Path):
    archive = an_archive(slurm_site, tmp_path, ["a/1.png", "a/2.png", "a/fails.png"])
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["size"].states["a/fails.png"] is PageState.HELD
        (held,) = view.steps["size"].held
        assert "this page has no size" in held.words
        assert view.steps["area"].landed == 2


def test_a_page_that_kills_its_worker_does_not_take_the_others(
    slurm_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path, ["a/1.png", "a/kills.png", "a/2.png"])
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["size"].states["a/kills.png"] is PageState.HELD
        assert view.steps["area"].landed == 2


def test_a_runner_killed_in_mid_page_keeps_what_it_wrote_and_the_rest_goes_again(
    slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path, ["a/1.png", "a/2.png", "a/crashes.png"])
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        (archive.folder / "mended").touch()
        view = run_all(engine)
        assert view.steps["area"].landed == 3
    assert archive.ran()["size", "a/1.png"] == 1
    assert len(arrays) == 2


def test_an_element_cancelled_by_hand_while_it_waits_goes_again(
    slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path
):
    names = ["a/slow1.png", "a/slow2.png"]
    archive = an_archive(slurm_site, tmp_path, names, pages_per_task=1, parallel=1)
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        (waiting,) = elements(slurm_site, "PENDING")
        slurm_site.ask("scancel", waiting)
        archive.go()
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert set(archive.ran().values()) == {1}
    assert len(arrays) == 2


def test_an_element_cancelled_by_hand_while_it_runs_goes_again(
    slurm_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path, ["a/1.png", "a/slow.png"])
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        (running,) = elements(slurm_site, "RUNNING")
        slurm_site.ask("scancel", running)
        archive.go()
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert archive.ran()["size", "a/1.png"] == 1


def test_a_time_limit_keeps_what_was_written_and_the_ladder_gives_more_time(
    slurm_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(
        slurm_site,
        tmp_path,
        ["a/1.png", "a/slow.png"],
        pages_per_task=10,
        time="00:01:00",
        ladder=[{"time": "00:30:00"}],
    )
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        # A minute is the shortest limit that Slurm has.
        advance_until(engine, 1)
        assert engine.ledger.holds.attempts_of("letters", "letters", BATCH)
        archive.go()
        seen = advance_to_rest(engine)
        assert seen.view is not None
        assert seen.view.steps["area"].landed == 2
    assert archive.ran()["size", "a/1.png"] == 1


def test_a_job_that_is_never_started_says_why(slurm_site: SlurmSite, tmp_path: Path):
    archive = an_archive(slurm_site, tmp_path)
    slurm_site.ask("scontrol", "update", "PartitionName=debug", "State=DOWN")
    with archive.engine() as engine:
        seen = sent(engine)
        stage = first_stage(engine)
        ids = [task.remote_id for task in seen.remote if task.remote_id]
        slurm_site.ask("scontrol", "hold", ids[0].partition("_")[0])
        slurm_site.ask("scontrol", "update", "PartitionName=debug", "State=UP")

        def words() -> str:
            return engine.place(stage.place).statuses(ids)[ids[0]].words

        until(lambda: "JobHeldAdmin" in words())


def test_a_command_that_is_not_there_blames_no_page(slurm_site: SlurmSite, tmp_path: Path):
    archive = an_archive(slurm_site, tmp_path, runner="no-such-runner")
    with archive.engine() as engine:
        assert "no-such-runner" in failure_of(engine)
        assert engine.ledger.holds.attempts_of("letters", "letters", BATCH) == {}


def test_what_a_task_finished_lands_though_its_next_step_cannot_be_done(
    slurm_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path)
    with (archive.folder / "job_steps.py").open("a") as code:
        code.write(NO_MODEL)
    with archive.engine() as engine:
        failure = failure_of(engine)
        assert "there is no model of areas" in failure
        view = look(engine, engine.project.recipe("letters"), BATCH, ["size"])
        assert view.steps["size"].landed == 6
    assert set(archive.ran("size").values()) == {1}


def test_never_more_arrays_are_open_than_the_cap(slurm_site: SlurmSite, tmp_path: Path):
    names = [f"{folder}/slow.png" for folder in "abc"]
    archive = an_archive(slurm_site, tmp_path, names, max_open=2)
    with archive.engine() as engine:
        stage = first_stage(engine)
        seen = [advance(engine, stage, f"{folder}/0001") for folder in "abc"]
        assert [bool(each.remote) for each in seen] == [True, True, False]
        assert seen[2].waiting is not None
        assert "Waiting for a slot at slurm" in seen[2].waiting
        archive.go()


def test_what_takes_the_last_slot_waits_for_none(slurm_site: SlurmSite, tmp_path: Path):
    archive = an_archive(slurm_site, tmp_path, ["a/slow.png"], max_open=1)
    with archive.engine() as engine:
        assert sent(engine).waiting is None
    archive.go()


def test_stop_ends_waiting_and_running_elements_and_lands_what_was_written(
    slurm_site: SlurmSite, tmp_path: Path
):
    names = ["a/1.png", "a/slow1.png", "a/slow2.png", "a/slow3.png"]
    archive = an_archive(slurm_site, tmp_path, names, pages_per_task=2, parallel=1)
    with archive.engine() as engine:
        seen = sent(engine)
        until(archive.at)
        assert stop_tasks(engine, seen.remote) == []
        rested: Counter[bool] = Counter()
        landed = 0
        for task in seen.remote:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                at_rest, rows = land_stopped(engine, task.id)
                if at_rest:
                    landed += rows
                    rested[True] += 1
                    break
                time.sleep(0.2)
        assert rested[True] == len(seen.remote)
        view = look(engine, engine.project.recipe("letters"), BATCH, ["size"])
        assert view.steps["size"].landed == 1
        assert landed >= 1
        assert engine.ledger.holds.attempts_of("letters", "letters", BATCH) == {}
    assert elements(slurm_site, "PENDING,RUNNING") == []
    archive.go()
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["area"].landed == 4
    assert archive.ran()["size", "a/1.png"] == 1


def test_a_killed_slurmd_loses_no_page(slurm_site: SlurmSite, tmp_path: Path):
    archive = an_archive(slurm_site, tmp_path, ["a/1.png", "a/slow.png"])
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        slurm_site.kill("slurmd")
        for _ in range(5):
            assert advance(engine, first_stage(engine), BATCH).failure is None
        slurm_site.up()
        archive.go()
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert archive.ran()["size", "a/1.png"] == 1


def test_while_the_controller_is_down_nothing_is_taken_for_ended(
    slurm_site: SlurmSite, tmp_path: Path
):
    archive = an_archive(slurm_site, tmp_path, ["a/slow.png"])
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        slurm_site.kill("slurmctld", signal.SIGKILL)
        seen = advance(engine, first_stage(engine), BATCH)
        assert (seen.open, seen.failure) == (1, None)
        slurm_site.up()
        archive.go()
        view = run_all(engine)
        assert view.steps["area"].landed == 1
    assert set(archive.ran().values()) == {1}


def test_a_killed_landing_lands_everything_at_the_next_look(slurm_site: SlurmSite, tmp_path: Path):
    archive: JobArchive = an_archive(slurm_site, tmp_path, pages_per_task=2)
    with archive.engine() as engine:
        sent(engine)
        until(lambda: not elements(slurm_site, "PENDING,RUNNING,COMPLETING"))
    assert start(archive, "Library.land:after:1").code() == -signal.SIGKILL
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["area"].landed == 6
    assert set(archive.ran().values()) == {1}
