"""How jobs end on the rehearsed hub: what was put back lands, and only the rest goes again."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.look import look
from recipes_orchestration.engine.stopping import land_stopped, stop_tasks
from recipes_orchestration.rehearsal import HUB, HUB_TOKEN, HUB_USER, HubScript, Rehearsal

from .cloud_runner import start
from .hub_archive import (
    advance_to_rest,
    creates,
    failure_of,
    far_files,
    hub_archive,
    kill_job,
    putting_back_often,
    sent,
    tries_of,
    until,
)
from .job_archive import BATCH, JobArchive, advance_until, first_stage, run_all

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

SLOW = ["a/1.png", "a/slow.png"]


def cancel_at_the_hub(hub: Rehearsal) -> None:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub.url, token=HUB_TOKEN)
    for job in hub.counts(HUB)["jobs"]:
        api.cancel_job(job_id=job["id"], namespace=HUB_USER)
    until(lambda: all(job.ended is not None for job in list(hub.hub.jobs.values())))


def put_back(hub: Rehearsal) -> bool:
    return any(far_files(hub, "/out/results.jsonl").values())


@pytest.fixture
def slow(hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobArchive:
    """One page that is done at once and one that waits for a file."""
    putting_back_often(monkeypatch)
    return hub_archive(tmp_path, hub, SLOW, timeout_minutes=30)


def test_a_job_killed_half_way_keeps_what_it_put_back(hub: Rehearsal, slow: JobArchive):
    with slow.engine() as engine:
        sent(engine)
        until(lambda: put_back(hub))
        kill_job(hub)
        slow.go()
        advance_until(engine, 1)
        assert tries_of(engine) == {"a/slow.png": "node"}
        view = run_all(engine)
    assert view.steps["area"].landed == 2
    assert slow.ran()["size", "a/1.png"] == 1
    assert creates(hub) == 2


def test_a_job_killed_in_the_middle_of_a_commit_goes_again(
    hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    putting_back_often(monkeypatch)
    hub.script(HUB, HubScript(jobs=1, kill_at_commit=1))
    archive = hub_archive(tmp_path, hub, ["a/1.png", "a/2.png"])
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 2
    assert creates(hub) == 2


def test_a_job_cancelled_by_hand_keeps_what_it_put_back_and_the_rest_goes_again(
    hub: Rehearsal, slow: JobArchive
):
    with slow.engine() as engine:
        sent(engine)
        until(lambda: put_back(hub))
        cancel_at_the_hub(hub)
        slow.go()
        advance_until(engine, 1)
        assert tries_of(engine) == {"a/slow.png": "cancelled"}
        view = run_all(engine)
    assert view.steps["area"].landed == 2
    assert slow.ran()["size", "a/1.png"] == 1


def test_a_job_cancelled_while_it_waits_goes_again(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(jobs=1, never_starts=True))
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        seen = sent(engine)
        (id,) = [task.remote_id or "" for task in seen.remote]
        standing = engine.place("hf_jobs").statuses([id])[id]
        assert standing.words == "scheduling on cpu-basic"
        cancel_at_the_hub(hub)
        view = run_all(engine)
    assert view.steps["area"].landed == 4


def test_before_its_time_is_over_a_task_puts_back_what_it_has(hub: Rehearsal, tmp_path: Path):
    # Nothing is put back in between, and the second rung has time enough.
    ladder = [{"timeout_minutes": 30}]
    archive = hub_archive(tmp_path, hub, SLOW, timeout_minutes=0.2, pages_per_task=2, ladder=ladder)
    with archive.engine() as engine:
        sent(engine)
        until(archive.at)
        advance_until(engine, 1)
        assert tries_of(engine) == {"a/slow.png": "expired"}
        archive.go()
        view = run_all(engine)
    assert view.steps["area"].landed == 2
    assert archive.ran()["size", "a/1.png"] == 1


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Job timeout", "expired"),
        ("Job failed with exit code: 137. Reason: OOMKilled", "memory"),
        ("Job failed with exit code: 137. Reason: Error", "node"),
        ("Node was lost", "node"),
    ],
)
def test_the_hub_s_words_say_what_the_pages_of_a_job_came_to(
    hub: Rehearsal, tmp_path: Path, message: str, kind: str
):
    hub.script(HUB, HubScript(jobs=1, ends_as="ERROR", ends_message=message))
    archive = hub_archive(tmp_path, hub, ["a/slow.png"])
    with archive.engine() as engine:
        sent(engine)
        until(lambda: advance(engine, first_stage(engine), BATCH) and tries_of(engine))
        assert tries_of(engine) == {"a/slow.png": kind}
        archive.go()
        advance_to_rest(engine)


def test_pages_that_got_too_little_go_to_the_next_machine_of_the_ladder(
    hub: Rehearsal, tmp_path: Path
):
    hub.script(HUB, HubScript(jobs=1, ends_as="ERROR", ends_message="out of memory"))
    archive = hub_archive(tmp_path, hub, pages=2, ladder=[{"flavor": "cpu-upgrade"}])
    with archive.engine() as engine:
        run_all(engine)
    assert [job.spec.flavor for job in hub.hub.jobs.values()] == ["cpu-basic", "cpu-upgrade"]


def test_a_runner_that_is_not_there_fails_the_run_with_its_log(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, runner="no-such-runner")
    with archive.engine() as engine:
        sent(engine)
        words = failure_of(engine)
        assert "no-such-runner could not be started" in words
        assert tries_of(engine) == {}


def test_what_a_job_cost_that_failed_as_a_whole_is_booked_as_wasted(hub: Rehearsal, tmp_path: Path):
    # The Hub counts whole seconds.
    archive = hub_archive(tmp_path, hub, runner="no-such-runner", setup=["sleep 1.1"])
    with archive.engine() as engine:
        sent(engine)
        failure_of(engine)
        (booking,) = engine.ledger.bookings.all()
    assert booking.landed_usd == 0
    assert booking.wasted_usd > 0


def test_a_setup_that_fails_fails_the_run_with_its_log(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, setup=["echo no such index >&2; exit 1"])
    with archive.engine() as engine:
        sent(engine)
        assert "no such index" in failure_of(engine)


def test_a_step_that_cannot_be_loaded_there_fails_the_run_in_its_words(
    hub: Rehearsal, tmp_path: Path
):
    # The project's code goes along, so what it imports is missing only over there.
    archive = hub_archive(tmp_path, hub)
    steps = archive.folder / "job_steps.py"
    missing = 'if os.environ.get("JOB_ID"):\n    raise ImportError("no libfoo on this machine")\n'
    steps.write_text(f"{steps.read_text()}\n\n{missing}")
    with archive.engine() as engine:
        sent(engine)
        words = failure_of(engine)
        assert "no libfoo on this machine" in words
        assert "cannot be done" in words


def test_a_job_that_the_hub_forgot_before_it_wrote_is_sent_again(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(jobs=1, never_starts=True))
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        sent(engine)
        (first,) = hub.hub.jobs
        hub.script(HUB, HubScript(forget=[first]))
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 2


def test_a_job_that_the_hub_forgot_lands_what_it_put_back(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        sent(engine)
        until(lambda: far_files(hub, "/out/outcome.json"))
        hub.script(HUB, HubScript(forget=["*"]))
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1


def test_stop_ends_the_job_and_lands_what_it_put_back(hub: Rehearsal, slow: JobArchive):
    with slow.engine() as engine:
        seen = sent(engine)
        until(lambda: put_back(hub))
        assert stop_tasks(engine, seen.remote) == []
        (task,) = seen.remote
        until(lambda: land_stopped(engine, task.id)[0])
        view = look(engine, engine.project.recipe("letters"), BATCH, ["size"])
        assert view.steps["size"].landed == 1
        assert tries_of(engine) == {}
    assert {job["stage"] for job in hub.counts(HUB)["jobs"]} == {"CANCELED"}


def killed(archive: JobArchive, point: str) -> None:
    """Runs it in a process of its own, which ends itself by SIGKILL at that point."""
    assert start(archive, point).code() == -signal.SIGKILL


def test_a_sender_killed_when_its_job_was_taken_leaves_it_to_the_next_one(
    hub: Rehearsal, tmp_path: Path
):
    archive = hub_archive(tmp_path, hub)
    killed(archive, "HfJobsPlace.submit:after:1")
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1


def test_a_sender_killed_before_it_asked_for_its_job_leaves_its_pages_to_the_next_one(
    hub: Rehearsal, tmp_path: Path
):
    archive = hub_archive(tmp_path, hub)
    killed(archive, "Hub.run:before:1")
    assert len(far_files(hub, ".png")) == 4
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1


def test_a_landing_that_was_killed_is_made_whole_by_the_next_one(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, pages_per_task=2)
    with archive.engine() as engine:
        sent(engine)
        until(lambda: len(far_files(hub, "/out/outcome.json")) == 2)
    killed(archive, "Library.land:after:1")
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert set(archive.ran().values()) == {1}
    assert creates(hub) == 2
