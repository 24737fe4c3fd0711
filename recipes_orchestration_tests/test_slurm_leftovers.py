"""What lies on scratch of tasks that are over goes, whoever was killed while removing it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.places.slurm.login import Login
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .cloud_runner import start
from .hub_archive import until
from .job_archive import (
    BATCH,
    advance_until,
    chain,
    first_stage,
    make_job_archive,
    run_all,
    slurm_place,
)
from .slurm_tasks import Cluster, cluster, settled


def files_of(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*"))


def batch_folder(here: Cluster, remote_id: str) -> Path:
    return here.task_folder(remote_id).parents[1]


def landed(here: Cluster) -> str:
    """The remote id of a task that has ended."""
    place = here.place()
    (remote_id,) = here.send(place, here.spec("a"))
    settled(place, [remote_id])
    return remote_id


def test_a_batch_folder_that_was_taken_away_by_somebody_who_was_killed_goes(
    slurm_site: SlurmSite, tmp_path: Path
):
    here = cluster(slurm_site, tmp_path)
    remote_id = landed(here)
    batch = batch_folder(here, remote_id)
    here.clear(here.place(), remote_id)
    (batch.with_name(f".gone.{batch.name}+123") / "pages").mkdir(parents=True)
    here.clear(here.place(), remote_id)
    assert files_of(here.scratch) == ["archive", "archive/.arrays"]


def test_a_batch_folder_that_was_taken_away_while_another_was_sent_is_put_back(
    slurm_site: SlurmSite, tmp_path: Path
):
    here = cluster(slurm_site, tmp_path)
    remote_id = landed(here)
    batch = batch_folder(here, remote_id)
    here.clear(here.place(), remote_id)
    (batch.with_name(f".gone.{batch.name}+123") / "width-being-sent" / "0").mkdir(parents=True)
    here.clear(here.place(), remote_id)
    assert files_of(batch) == ["width-being-sent", "width-being-sent/0"]


@pytest.mark.parametrize("name", ["width-1/../../..", "a b", ".."])
def test_no_path_leads_out_of_the_folder(slurm_site: SlurmSite, tmp_path: Path, name: str):
    here = cluster(slurm_site, tmp_path)
    remote_id = landed(here)
    before = files_of(here.scratch)
    (sent,) = here.specs
    here.groups[sent] = {**here.groups[sent], "batch": name}
    assert here.clear(here.place(), remote_id) == [sent]
    assert files_of(here.scratch) == before


@pytest.mark.slow
@pytest.mark.usefixtures("restored_path")
def test_tasks_that_land_together_are_removed_by_one_call_and_later_looks_call_nothing(
    slurm_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls: list[int] = []
    clear = Login.clear

    def counted(login: Login, tasks: Sequence[tuple[str, str, int]]) -> list[int]:
        calls.append(len(tasks))
        return clear(login, tasks)

    monkeypatch.setattr(Login, "clear", counted)
    settings = slurm_place(slurm_site, tmp_path, pages_per_task=1)
    archive = make_job_archive(tmp_path / "project", settings, pages=3)
    with archive.engine() as engine:
        stage = first_stage(engine)
        ids = [task.remote_id or "" for task in advance(engine, stage, BATCH).remote]
        while any(each.state == "running" for each in engine.place("slurm").statuses(ids).values()):
            engine.place("slurm").wait(0.2)
        advance_until(engine, 6)
        advance(engine, stage, BATCH)
    assert calls == [3]


@pytest.mark.slow
@pytest.mark.usefixtures("restored_path")
def test_a_task_that_is_removed_before_a_second_process_reads_it_blames_no_page(
    slurm_site: SlurmSite, tmp_path: Path
):
    settings = slurm_place(slurm_site, tmp_path)
    archive = make_job_archive(tmp_path / "project", settings, pages=2)
    archive.write_recipe(chain("slurm")[:2])
    late = start(archive, "SlurmPlace.results:before:1", number=signal.SIGSTOP)
    until(late.is_stopped)
    with archive.engine() as engine:
        assert run_all(engine).steps["area"].landed == 2
        before = engine.ledger.records.last()
        assert late.signalled(signal.SIGCONT) == 0
        assert engine.ledger.holds.attempts_of("letters", "letters", BATCH) == {}
        assert engine.ledger.records.last() == before
