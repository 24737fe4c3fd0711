"""A run that sends to the hub is killed or hears no answer: no page goes twice, none is lost."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from recipes_orchestration.engine.look import BatchView
from recipes_orchestration.rehearsal import HUB, HubScript, Rehearsal

from .cloud_runner import start
from .hub_archive import creates, far_files, hub_archive, sent, until
from .job_archive import JobArchive, run_all, values_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

KILLED = -9
PAGES, TASKS = 4, 2
SENDING = [
    "TaskBook.prepare_all:after:1",
    "HfJobsPlace.submit:before:1",
    "Store.send:after:1",
    "HfJobsPlace.submit:after:1",
    "TaskBook.sent:before:1",
    "TaskBook.sent:after:1",
    "HfJobsPlace.submit:before:2",
]
LANDING = [
    "HfJobsPlace.results:before:1",
    "Library.land:after:1",
    "Library.compact:after:1",
    "TaskBook.landed:before:1",
    "TaskBook.landed:after:1",
    "LeftoverBook.take:after:1",
    "Store.remove:before:1",
    "Store.remove:after:1",
    "LeftoverBook.gone:before:1",
]


def an_archive(hub: Rehearsal, folder: Path) -> JobArchive:
    return hub_archive(folder, hub, pages=PAGES, pages_per_task=PAGES // TASKS)


def packed_files(archive: JobArchive) -> list[Path]:
    """What lies here of tasks for the hub."""
    return [each for each in (archive.folder / ".recipes" / "tasks").rglob("*") if each.is_file()]


def check(hub: Rehearsal, archive: JobArchive) -> BatchView:
    """Goes on after the kill: all lands, with one job a task and every page worked on once.

    Nothing is left at the hub, nor of what was packed for it here.
    """
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["area"].landed == PAGES
        assert len(values_of(engine)) == PAGES
        assert engine.ledger.tasks.open() == []
    assert set(archive.ran().values()) == {1}
    tasks = Counter(job["labels"]["recipes-task"] for job in hub.counts(HUB)["jobs"])
    assert len(tasks) == TASKS
    assert set(tasks.values()) == {1}
    assert far_files(hub) == {}
    assert packed_files(archive) == []
    return view


@pytest.mark.parametrize("point", SENDING)
def test_a_sender_killed_at_any_write_leaves_one_job_a_task_and_loses_nothing(
    hub: Rehearsal, tmp_path: Path, point: str
):
    archive = an_archive(hub, tmp_path)
    assert start(archive, point).code() == KILLED
    check(hub, archive)
    assert creates(hub) == TASKS


@pytest.mark.parametrize("point", LANDING)
def test_a_landing_killed_at_any_write_is_made_whole_and_nothing_is_sent_again(
    hub: Rehearsal, tmp_path: Path, point: str
):
    archive = an_archive(hub, tmp_path)
    with archive.engine() as engine:
        sent(engine)
        until(lambda: len(far_files(hub, "/out/outcome.json")) == TASKS)
    assert start(archive, point).code() == KILLED
    check(hub, archive)
    assert creates(hub) == TASKS


def test_a_sender_killed_while_its_job_is_being_answered_leaves_it_to_the_next_one(
    hub: Rehearsal, tmp_path: Path
):
    hub.script(HUB, HubScript(hang_reply_seconds=20))
    archive = an_archive(hub, tmp_path)
    run = start(archive)
    until(lambda: hub.counts(HUB)["jobs"])
    assert run.signalled(signal.SIGKILL) == KILLED
    hub.script(HUB, HubScript())
    check(hub, archive)
    assert creates(hub) == TASKS


def test_a_sender_killed_before_it_looks_for_a_job_whose_answer_was_lost_leaves_it_too(
    hub: Rehearsal, tmp_path: Path
):
    hub.script(HUB, HubScript(lose_reply=1))
    archive = an_archive(hub, tmp_path)
    assert start(archive, "HfJobsPlace.find:before:1").code() == KILLED
    check(hub, archive)
    assert creates(hub) == TASKS
