"""A run that sends to a provider is killed with SIGKILL: all lands, and nothing is sent twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import BatchView
from recipes_orchestration.places.processes import process_lives
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import (
    BATCH,
    PROVIDERS,
    CloudArchive,
    make_cloud_archive,
    run_all,
    stage_named,
    values_of,
)
from .cloud_runner import direct, start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

KILLED = -9
PAGES = 6
UPLOADED = {
    "openai": "SdkHttp.create:before:2",
    "gemini": "GeminiBatches._upload:after:1",
    "bedrock": "Aws.told:before:2",
}
POINTS = [
    "SpoolPart.add:after:3",
    "SpoolPart.finish:after:1",
    "TaskBook.prepare_all:before:1",
    "TaskBook.prepare_all:after:1",
    "CloudPlace.submit:before:1",
    "CloudPlace.submit:after:1",
    "TaskBook.sent:before:1",
    "TaskBook.sent:after:1",
    "CloudPlace.results:before:1",
    "Library.keep_answers:before:1",
    "Library.keep_answers:during:1",
    "Library.keep_answers:after:1",
    "Library.land:before:1",
    "Library.land:after:1",
    "TaskBook.ended:before:1",
    "TaskBook.ended:after:1",
    "Library.compact:before:1",
    "Library.compact:after:1",
    "BookingBook.book:before:1",
    "BookingBook.book:after:1",
    "TaskBook.landed:before:1",
    "TaskBook.landed:after:1",
]


def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Waits until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def an_archive(folder: Path, rehearsal: Rehearsal, provider: str) -> CloudArchive:
    direct(rehearsal, provider)
    return make_cloud_archive(folder, provider, PAGES, bucket=rehearsal.bucket)


def check_sent_once(rehearsal: Rehearsal, provider: str, pages: int = PAGES) -> None:
    """One batch at the provider, with a request for each page."""
    counts = rehearsal.counts(provider)
    assert [batch["size"] for batch in counts["batches"]] == [pages]
    assert set(counts["requests"].values()) == {1}
    assert len(counts["requests"]) == pages
    assert counts["plain_requests"] == {}


def check_landed(engine: Engine, view: BatchView, pages: int = PAGES) -> None:
    """Every page has its row, nothing is open or claimed, and one bill was booked."""
    assert view.steps["read"].landed == pages
    assert len(values_of(engine)) == pages
    assert engine.ledger.tasks.open() == []
    assert engine.ledger.tasks.claimed(view.steps["read"].keys.values()) == {}
    (booking,) = engine.ledger.bookings.all()
    rows = engine.library.table("letters", "read", BATCH, ["cost_usd"]).to_pylist()
    assert booking.landed_usd == sum(row["cost_usd"] for row in rows)
    assert booking.lines == {"landed": pages}


def check_swept(archive: CloudArchive) -> None:
    """What the dead process had in its spool is gone."""
    folders = [each for each in archive.folder.rglob("spool/*") if each.is_dir()]
    assert [each for each in folders if process_lives(each.name.partition("~")[0]) is False] == []


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_kill_at_any_write_sends_once_and_loses_nothing(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, point: str
) -> None:
    archive = an_archive(tmp_path, rehearsal, provider)
    assert start(archive, point).code() == KILLED
    with archive.engine() as engine:
        check_landed(engine, run_all(engine))
        check_swept(archive)
    check_sent_once(rehearsal, provider)


@pytest.mark.parametrize("provider", UPLOADED)
def test_a_kill_between_upload_and_create_makes_one_batch(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = an_archive(tmp_path, rehearsal, provider)
    assert start(archive, UPLOADED[provider]).code() == KILLED
    assert rehearsal.counts(provider)["creates"] == 0
    with archive.engine() as engine:
        check_landed(engine, run_all(engine))
    check_sent_once(rehearsal, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_kill_while_the_create_is_being_answered_makes_one_batch(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = an_archive(tmp_path, rehearsal, provider)
    direct(rehearsal, provider, hang_reply_seconds=20, batches=1)
    run = start(archive)
    until(lambda: len(rehearsal.counts(provider)["batches"]) == 1)
    assert run.signalled(9) == KILLED
    with archive.engine() as engine:
        check_landed(engine, run_all(engine))
    check_sent_once(rehearsal, provider)
    assert rehearsal.counts(provider)["creates"] == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_kill_after_another_sends_once(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = an_archive(tmp_path, rehearsal, provider)
    for point in (
        "TaskBook.prepare_all:after:1",
        "CloudPlace.submit:after:1",
        "TaskBook.sent:after:1",
        "Library.land:after:1",
        "BookingBook.book:after:1",
    ):
        assert start(archive, point).code() == KILLED
    with archive.engine() as engine:
        check_landed(engine, run_all(engine))
    check_sent_once(rehearsal, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_kill_while_the_batch_runs_leaves_it_to_be_adopted(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = an_archive(tmp_path, rehearsal, provider)
    direct(rehearsal, provider, never_ends=True)
    run = start(archive)
    with archive.engine() as engine:
        until(lambda: any(task.remote_id for task in engine.ledger.tasks.open()))
        assert run.signalled(9) == KILLED
        rehearsal.finish(provider)
        check_landed(engine, run_all(engine))
        assert stage_named(engine).place == provider
    check_sent_once(rehearsal, provider)


@pytest.mark.parametrize(
    "point",
    [
        "Library.land:after:1",
        "Library.compact:before:1",
        "BookingBook.book:before:1",
        "TaskBook.landed:before:1",
    ],
)
def test_a_failed_line_that_lands_twice_counts_as_one_attempt(
    tmp_path: Path, rehearsal: Rehearsal, point: str
) -> None:
    archive = an_archive(tmp_path, rehearsal, "openai")
    direct(rehearsal, "openai", error_lines=1, batches=1)
    assert start(archive, point).code() == KILLED
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["read"].landed == PAGES
        assert len(engine.ledger.bookings.all()) == 2
    sizes = [batch["size"] for batch in rehearsal.counts("openai")["batches"]]
    assert sizes == [PAGES, 1]
