"""Two processes at the same pages of a provider, plain calls that were killed, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.errors import PlaceError
from recipes_orchestration.ledger.tasks import TaskState
from recipes_orchestration.rehearsal import Rehearsal

from .archive import find_pages
from .cloud_archive import (
    BATCH,
    PROVIDERS,
    CloudArchive,
    advance_once,
    make_cloud_archive,
    run_all,
    values_of,
)
from .cloud_runner import STOPPED, direct, start
from .test_cloud_kills import check_landed, check_sent_once, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

PAGES = 6
PARALLEL = 2
STOPS = [signal.SIGINT, signal.SIGTERM]


def an_archive(folder: Path, rehearsal: Rehearsal, provider: str) -> CloudArchive:
    place = {"parallel": PARALLEL}
    return make_cloud_archive(folder, provider, PAGES, bucket=rehearsal.bucket, place=place)


def with_equal_pages(archive: CloudArchive) -> CloudArchive:
    """The pages of `a` are in `b` too."""
    shutil.copytree(archive.pages / "a", archive.pages / "b")
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def open_tasks(engine: Engine) -> list[TaskState]:
    return [task.state for task in engine.ledger.tasks.open()]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_runs_of_one_batch_send_it_once(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, delay_seconds=1)
    archive = an_archive(tmp_path, rehearsal, provider)
    rivals = [start(archive) for _ in range(2)]
    assert [rival.code() for rival in rivals] == [0, 0]
    check_sent_once(rehearsal, provider)
    with archive.engine() as engine:
        check_landed(engine, run_all(engine))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_runs_of_equal_pages_send_each_once(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, delay_seconds=1)
    archive = with_equal_pages(an_archive(tmp_path, rehearsal, provider))
    rivals = [start(archive, batch=batch) for batch in (BATCH, "b/0001")]
    assert [rival.code() for rival in rivals] == [0, 0]
    counts = rehearsal.counts(provider)
    assert sum(batch["size"] for batch in counts["batches"]) == PAGES
    with archive.engine() as engine:
        assert len(values_of(engine)) == len(values_of(engine, batch="b/0001")) == PAGES


def test_pages_whose_rival_was_killed_land_from_its_batch(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "openai")
    archive = with_equal_pages(an_archive(tmp_path, rehearsal, "openai"))
    assert start(archive, "TaskBook.sent:after:1").code() == -signal.SIGKILL
    with archive.engine() as engine:
        view = run_all(engine, "b/0001")
        assert view.steps["read"].landed == PAGES
        assert len(values_of(engine)) == PAGES
        assert open_tasks(engine) == []
        assert len(engine.ledger.bookings.all()) == 1
    check_sent_once(rehearsal, "openai")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plain_calls_of_a_killed_run_are_asked_again_only_where_no_answer_was_kept(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, plain_seconds=0.2)
    archive = an_archive(tmp_path, rehearsal, provider)
    assert start(archive, "Journal.append:after:3", now=True).code() == -signal.SIGKILL
    direct(rehearsal, provider)
    with archive.engine() as engine:
        view = run_all(engine, now=True)
        assert view.steps["read"].landed == len(values_of(engine)) == PAGES
        assert open_tasks(engine) == []
        bookings = engine.ledger.bookings.all()
        assert sum(each.lines["landed"] for each in bookings) == PAGES
        rows = engine.library.table("letters", "read", BATCH, ["cost_usd"]).to_pylist()
        landed = sum(each.landed_usd for each in bookings)
        assert landed == sum(row["cost_usd"] for row in rows)
    counts = rehearsal.counts(provider)
    assert len(counts["plain_requests"]) == PAGES
    # Calls that were on their way when the process died are repeated, and no others.
    assert sum(counts["plain_requests"].values()) <= PAGES + PARALLEL
    assert max(counts["plain_requests"].values()) <= 2
    assert counts["batches"] == []


@pytest.mark.parametrize(
    "point",
    [
        "Journal.begin:before:1",
        "Journal.begin:after:1",
        "PlainTasks.start:after:1",
        "TaskBook.sent:before:1",
        "TaskBook.sent:after:1",
        "Journal.append:before:1",
        "Library.land:after:1",
        "Library.keep_answers:after:1",
        "BookingBook.book:after:1",
        "TaskBook.landed:before:1",
        "Journal.remove:before:1",
    ],
)
def test_plain_calls_killed_at_any_write_all_land(
    tmp_path: Path, rehearsal: Rehearsal, point: str
) -> None:
    direct(rehearsal, "anthropic", plain_seconds=0.02)
    archive = an_archive(tmp_path, rehearsal, "anthropic")
    assert start(archive, point, now=True).code() == -signal.SIGKILL
    with archive.engine() as engine:
        assert run_all(engine, now=True).steps["read"].landed == PAGES
        assert open_tasks(engine) == []
        lines = [each.lines for each in engine.ledger.bookings.all()]
        assert sum(each.get("landed", 0) for each in lines) == PAGES
    asked = rehearsal.counts("anthropic")["plain_requests"]
    assert len(asked) == PAGES
    assert sum(asked.values()) <= PAGES + PARALLEL
    # Killed between the last write and this, the journal stays until it is old.
    left = list(archive.folder.rglob("answers/*.jsonl"))
    assert len(left) == (point == "Journal.remove:before:1")
    for journal in left:
        os.utime(journal, (0, 0))
    with archive.engine() as engine:
        engine.place("anthropic")
    assert not any(journal.exists() for journal in left)


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("point", ["SpoolPart.add:after:3", "TaskBook.prepare_all:after:1"])
def test_a_run_stopped_before_it_asked_sends_once_later(
    tmp_path: Path, rehearsal: Rehearsal, point: str, number: int
) -> None:
    direct(rehearsal, "gemini")
    archive = an_archive(tmp_path, rehearsal, "gemini")
    assert start(archive, point, number=number).code() == STOPPED
    assert rehearsal.counts("gemini")["creates"] == 0
    with archive.engine() as engine:
        check_landed(engine, run_all(engine))
    check_sent_once(rehearsal, "gemini")


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_run_stopped_while_it_asks_leaves_the_batch_to_be_found(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, number: int
) -> None:
    direct(rehearsal, provider, hang_reply_seconds=20, batches=1)
    archive = an_archive(tmp_path, rehearsal, provider)
    run = start(archive)
    until(lambda: len(rehearsal.counts(provider)["batches"]) == 1)
    assert run.signalled(number) == STOPPED
    with archive.engine() as engine:
        assert open_tasks(engine) == [TaskState.preparing]
        check_landed(engine, run_all(engine))
    check_sent_once(rehearsal, provider)


@pytest.mark.parametrize("number", STOPS)
def test_a_run_stopped_while_it_waits_leaves_its_batch_open(
    tmp_path: Path, rehearsal: Rehearsal, number: int
) -> None:
    direct(rehearsal, "openai", never_ends=True)
    archive = an_archive(tmp_path, rehearsal, "openai")
    run = start(archive)
    with archive.engine() as engine:
        until(lambda: any(task.remote_id for task in engine.ledger.tasks.open()))
        assert run.signalled(number) == STOPPED
        assert open_tasks(engine) == [TaskState.open]
        assert rehearsal.counts("openai")["cancels"] == 0
        rehearsal.finish("openai")
        check_landed(engine, run_all(engine))
    check_sent_once(rehearsal, "openai")


@pytest.mark.parametrize("number", STOPS)
def test_plain_calls_that_were_stopped_land_and_the_rest_is_asked_later(
    tmp_path: Path, rehearsal: Rehearsal, number: int
) -> None:
    direct(rehearsal, "anthropic", plain_seconds=0.3)
    archive = an_archive(tmp_path, rehearsal, "anthropic")
    run = start(archive, now=True)
    until(lambda: rehearsal.counts("anthropic")["plain"] >= 3)
    assert run.signalled(number) == STOPPED
    with archive.engine() as engine:
        assert 0 < len(values_of(engine)) < PAGES
        assert open_tasks(engine) == []
        assert run_all(engine, now=True).steps["read"].landed == PAGES
        assert sum(each.lines["landed"] for each in engine.ledger.bookings.all()) == PAGES
    # In order: the calls on their way were waited for, so that none is made twice.
    assert set(rehearsal.counts("anthropic")["plain_requests"].values()) == {1}


def test_a_rival_that_lands_at_the_same_time_counts_a_failed_line_once(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct(rehearsal, "openai", error_lines=1, batches=1)
    archive = an_archive(tmp_path, rehearsal, "openai")
    with archive.engine() as engine, archive.engine() as rival:
        advance_once(engine)
        landing = engine.ledger.tasks.ended

        def late(*args: object, **named: object) -> bool:
            monkeypatch.setattr(engine.ledger.tasks, "ended", landing)
            advance_once(rival)
            return landing(*args, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(engine.ledger.tasks, "ended", late)
        try:
            assert run_all(engine).steps["read"].landed == PAGES
        except PlaceError as error:
            pytest.fail(str(error))
        assert len(values_of(engine)) == PAGES
    assert [batch["size"] for batch in rehearsal.counts("openai")["batches"]] == [PAGES, 1]
