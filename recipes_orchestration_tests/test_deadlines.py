"""A step's deadline: the place is asked, a person told once, and the pages are held or hurried."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from recipes_orchestration.engine.alerts import look_for_alerts
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import PageState, look
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.ledger.tables import holds, tasks
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.runner.work import FailureKind

from .cloud_archive import (
    BATCH,
    CloudArchive,
    advance_once,
    make_cloud_archive,
    read_step,
    run_all,
    values_of,
)
from .cloud_runner import direct
from .test_alerts import earlier

pytestmark = pytest.mark.usefixtures("restored_path")

PAGES = 3


def archive_with(folder: Path, **step: object) -> CloudArchive:
    steps = [read_step("anthropic", deadline="26h", **step)]
    return make_cloud_archive(folder, pages=PAGES, steps=steps)


def sent_ago(engine: Engine, hours: float) -> None:
    earlier(engine.ledger, tasks.c.sent_at, timedelta(hours=hours))


def states(engine: Engine) -> set[PageState]:
    view = look(engine, engine.project.recipe("letters"), BATCH, ["read"])
    return set(view.steps["read"].states.values())


def test_nothing_happens_before_the_deadline(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with archive_with(tmp_path).engine() as engine:
        advance_once(engine)
        sent_ago(engine, 25.9)
        poll_open(engine)
        assert [head.stopped for head in engine.ledger.tasks.heads()] == [None]
        assert engine.ledger.alerts.open() == []


def test_when_it_passes_the_batch_is_ended_and_its_pages_are_held(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with archive_with(tmp_path).engine() as engine:
        advance_once(engine)
        sent_ago(engine, 26.1)
        poll_open(engine)
        poll_open(engine)  # a second tick tells and asks nothing again
        (alert,) = engine.ledger.alerts.open()
        (head,) = engine.ledger.tasks.heads()
        assert head.stopped == "deadline"
        assert alert.kind == "deadline"
        assert alert.words.startswith(
            f"The deadline of 26h has passed for letters/read: batch a/0001, {head.remote_id} at "
            "anthropic, was sent 26.1 hours ago. anthropic says: "
        )
        assert alert.words.endswith("What it has answered lands; the rest is held.")
        assert rehearsal.counts("anthropic")["cancels"] == 1
        run_all(engine)
        assert states(engine) == {PageState.HELD}
        held = engine.ledger.holds.held("letters")
        assert {row.reason for row in held} == {FailureKind.DEADLINE}
        assert all(row.words.startswith("The step's deadline passed before") for row in held)
        look_for_alerts(engine)
        assert {each.kind for each in engine.ledger.alerts.open()} == {"hold"}
        assert rehearsal.counts("anthropic")["creates"] == 1


def test_with_calls_the_rest_goes_as_plain_calls(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with archive_with(tmp_path, on_deadline="calls").engine() as engine:
        advance_once(engine)
        sent_ago(engine, 27)
        poll_open(engine)
        (alert,) = engine.ledger.alerts.open()
        assert alert.words.endswith("the rest goes as plain calls.")
        run_all(engine)
        assert states(engine) == {PageState.LANDED}
        assert len(values_of(engine)) == PAGES
        counts = rehearsal.counts("anthropic")
        assert (counts["creates"], counts["cancels"]) == (1, 1)


def test_a_run_without_a_sensor_keeps_the_deadline_too(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with archive_with(tmp_path).engine() as engine:
        advance_once(engine)
        sent_ago(engine, 27)
        run_all(engine)
        assert states(engine) == {PageState.HELD}


def test_a_batch_that_is_sent_again_keeps_its_first_clock(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", expire_after=0)
    with archive_with(tmp_path).engine() as engine:
        advance_once(engine)
        sent_ago(engine, 24.5)
        rehearsal.finish("anthropic")
        direct(rehearsal, "anthropic", never_ends=True)
        (first,) = engine.ledger.tasks.heads()
        for _ in range(5):
            advance_once(engine)
        (second,) = engine.ledger.tasks.heads()
        assert second.id != first.id
        assert engine.ledger.alerts.open() == []
        sent_ago(engine, 2)
        earlier(engine.ledger, holds.c.since, timedelta(hours=2))
        poll_open(engine)
        (alert,) = engine.ledger.alerts.open()
        assert "was sent 26.5 hours ago" in alert.words


def test_pages_that_are_tried_again_have_the_whole_time_again(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with archive_with(tmp_path).engine() as engine:
        advance_once(engine)
        sent_ago(engine, 27)
        run_all(engine)
        engine.ledger.holds.clear("letters")
        direct(rehearsal, "anthropic")
        run_all(engine)
        assert states(engine) == {PageState.LANDED}


def test_a_step_without_a_deadline_waits_on(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with make_cloud_archive(tmp_path, pages=PAGES).engine() as engine:
        advance_once(engine)
        sent_ago(engine, 25)
        poll_open(engine)
        assert [head.stopped for head in engine.ledger.tasks.heads()] == [None]
