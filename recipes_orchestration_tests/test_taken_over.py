"""A process that slept while it was sending: whoever took its work over sends it, it does not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from recipes_orchestration.engine import standing
from recipes_orchestration.engine.advance import advance
from recipes_orchestration.errors import TakenOver
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.still_ours import asked_before_each, still_ours

from .cloud_archive import PROVIDERS, advance_once, make_cloud_archive, run_all
from .cloud_landing import sizes
from .cloud_runner import direct, start
from .hub_archive import creates, hub_archive, until
from .job_archive import BATCH, first_stage
from .job_archive import run_all as run_jobs
from .test_hf_leftovers import jobs_only


def test_nobody_is_asked_where_nobody_sends():
    still_ours()


def test_what_was_taken_over_is_not_ours():
    def check() -> None:
        raise TakenOver("It is another's.")

    with asked_before_each(check), pytest.raises(TakenOver):
        still_ours()
    still_ours()


@pytest.mark.slow
@pytest.mark.usefixtures("restored_path")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_that_was_taken_over_is_sent_once(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, provider: str
):
    direct(rehearsal, provider)
    archive = make_cloud_archive(tmp_path, provider, 3, bucket=rehearsal.bucket)
    sleeper = start(archive, "CloudPlace.submit:before:1", number=signal.SIGSTOP)
    until(sleeper.is_stopped)
    assert sleeper.process.pid is not None
    with archive.engine() as engine:
        # It has slept for so long that its heartbeat counts for nothing.
        monkeypatch.setattr(standing, "LOST_AFTER", -1.0)
        until(lambda: advance_once(engine).remote and sizes(rehearsal, provider))
        monkeypatch.undo()
        os.kill(sleeper.process.pid, signal.SIGCONT)
        assert sleeper.code() == 0
        assert run_all(engine).steps["read"].landed == 3
    assert sizes(rehearsal, provider) == [3]


@pytest.mark.slow
@pytest.mark.usefixtures("restored_path")
def test_a_job_that_was_taken_over_is_started_once(
    tmp_path: Path, hub: Rehearsal, monkeypatch: pytest.MonkeyPatch
):
    archive = jobs_only(hub_archive(tmp_path, hub, pages=2))
    sleeper = start(archive, "Store.send:after:1", number=signal.SIGSTOP)
    until(sleeper.is_stopped)
    assert sleeper.process.pid is not None
    with archive.engine() as engine:
        monkeypatch.setattr(standing, "LOST_AFTER", -1.0)
        until(lambda: advance(engine, first_stage(engine), BATCH).remote and creates(hub))
        monkeypatch.undo()
        os.kill(sleeper.process.pid, signal.SIGCONT)
        assert sleeper.code() == 0
        assert run_jobs(engine).steps["area"].landed == 2
    assert creates(hub) == 1
