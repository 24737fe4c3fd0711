"""What lies at the hub of tasks that are over goes, and nothing that another task still needs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.places.hf_jobs.store import Store
from recipes_orchestration.rehearsal import HUB, HubScript, Rehearsal

from .cloud_runner import start
from .hub_archive import advance_to_rest, creates, far_files, hub_archive, sent, tries_of, until
from .job_archive import BATCH, JobArchive, chain, first_stage, run_all

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]


def jobs_only(archive: JobArchive) -> JobArchive:
    """Without the step that needs workers here, which a process of a test may not have."""
    archive.write_recipe(chain("hf_jobs")[:2])
    return archive


def test_a_task_that_another_process_is_just_sending_keeps_its_folder(
    hub: Rehearsal, tmp_path: Path
):
    archive = jobs_only(hub_archive(tmp_path, hub, pages=2, pages_per_task=1))
    # Stopped when it has uploaded its second task and has not asked for its job.
    sender = start(archive, "Store.send:after:2", number=signal.SIGSTOP)
    assert sender.process.pid is not None
    until(lambda: hub.hub.jobs)
    until(lambda: len(far_files(hub, "/manifest.json")) == 2)
    until(lambda: len(far_files(hub, "/out/outcome.json")) == 1)
    with archive.engine() as engine:
        until(lambda: advance(engine, first_stage(engine), BATCH).landed)
        (landing,) = engine.ledger.tasks.open()
        kept = {path.split("/")[4] for path in far_files(hub, "/manifest.json")}
        assert kept == {landing.name}
        assert len(far_files(hub, ".png")) == 2
        os.kill(sender.process.pid, signal.SIGCONT)
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert sender.code() == 0
    assert creates(hub) == 2
    assert far_files(hub) == {}


def test_a_task_that_is_removed_before_a_second_process_reads_it_blames_no_page(
    hub: Rehearsal, tmp_path: Path
):
    archive = jobs_only(hub_archive(tmp_path, hub, pages=2))
    late = start(archive, "HfJobsPlace.results:before:1", number=signal.SIGSTOP)
    until(late.is_stopped)
    with archive.engine() as engine:
        assert run_all(engine).steps["area"].landed == 2
        assert far_files(hub) == {}
        before = engine.ledger.records.last()
        assert late.signalled(signal.SIGCONT) == 0
        assert tries_of(engine) == {}
        assert engine.ledger.records.last() == before
    assert creates(hub) == 1


def test_what_was_sent_of_a_task_that_goes_under_another_name_is_removed(
    hub: Rehearsal, tmp_path: Path
):
    archive = jobs_only(hub_archive(tmp_path, hub, pages=2, pages_per_task=1, settle_seconds=3600))
    assert start(archive, "Store.send:after:1").code() == -signal.SIGKILL
    with archive.engine() as engine:
        # The other task goes meanwhile, so that a later attempt is on its way.
        sent(engine)
        waited_for, other = engine.ledger.tasks.open()
        assert (waited_for.remote_id, other.attempt) == (None, 2)
        engine.place("hf_jobs").settle_seconds = 0.0
        view = run_all(engine)
        assert view.steps["area"].landed == 2
    assert creates(hub) == 2
    assert far_files(hub) == {}


def test_what_cannot_be_removed_fails_nothing_and_goes_at_the_next_start(
    hub: Rehearsal, tmp_path: Path
):
    archive = jobs_only(hub_archive(tmp_path, hub, pages=1))
    with archive.engine() as engine:
        sent(engine)
        until(lambda: far_files(hub, "/out/outcome.json"))
    hub.script(HUB, HubScript(commit_status=[503] * 3))
    assert start(archive).code() == 0
    with archive.engine() as engine:
        assert engine.ledger.tasks.open() == []
    assert far_files(hub)
    assert start(archive).code() == 0
    assert far_files(hub) == {}


def test_tasks_that_land_together_are_removed_by_one_call_and_later_looks_call_nothing(
    hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls: list[int] = []
    remove = Store.remove

    def counted(store: Store, folder: str, *tasks: str) -> None:
        calls.append(len(tasks))
        remove(store, folder, *tasks)

    monkeypatch.setattr(Store, "remove", counted)
    archive = hub_archive(tmp_path, hub, pages=3, pages_per_task=1)
    with archive.engine() as engine:
        sent(engine)
        until(lambda: len(far_files(hub, "/out/outcome.json")) == 3)
        until(lambda: all(job.ended for job in hub.hub.jobs.values()))
        advance_to_rest(engine)
        advance(engine, first_stage(engine), BATCH)
    assert calls == [3]
    assert far_files(hub) == {}
