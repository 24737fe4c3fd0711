"""Alerts: one for each cause, however often it is looked for and however many pages have it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa

from recipes_orchestration.engine.alerts import look_for_alerts
from recipes_orchestration.engine.causes import find_causes, note_over_cap
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.errors import OverCap
from recipes_orchestration.ledger.alerts import MOST_TRIES, QUIET, Alert, AlertKind, Cause
from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.holds import Failure
from recipes_orchestration.ledger.tables import alerts, tellings
from recipes_orchestration.ledger.tables import tasks as task_table

from .cloud_archive import CloudArchive, make_cloud_archive

PAUSED = Cause("paused/anthropic", AlertKind.PAUSED, "no credit")


def earlier(ledger: Ledger, column: sa.Column[datetime | None], by: timedelta) -> None:
    """Moves a time in the ledger into the past, in place of waiting."""
    database = ledger._database  # pyright: ignore[reportPrivateUsage]
    with database.engine.begin() as connection:
        for (at,) in connection.execute(sa.select(column).distinct()).all():
            if at is not None:
                move = sa.update(column.table).where(column == at)
                connection.execute(move.values({column.name: at - by}))


def untold(ledger: Ledger, *channels: str) -> list[str]:
    return [each.alert.cause for each in ledger.alerts.untold(channels or ("webhook",))]


def test_a_cause_is_one_alert_however_often_it_is_found(ledger: Ledger) -> None:
    assert [ledger.alerts.keep([PAUSED], AlertKind) for _ in range(3)] == [1, 0, 0]
    (alert,) = ledger.alerts.open()
    assert (alert.cause, alert.kind, alert.words) == ("paused/anthropic", "paused", "no credit")


def test_a_cause_that_is_not_found_any_more_has_ended(ledger: Ledger) -> None:
    ledger.alerts.keep([PAUSED], AlertKind)
    ledger.alerts.keep([], [AlertKind.HOLD])
    assert [each.cause for each in ledger.alerts.open()] == ["paused/anthropic"]
    ledger.alerts.keep([], [AlertKind.PAUSED])
    assert ledger.alerts.open() == []
    assert ledger.alerts.all()[0].ended_at is not None


def test_each_channel_is_told_once(ledger: Ledger) -> None:
    ledger.alerts.add(PAUSED)
    (first, second) = ledger.alerts.untold(["webhook", "email"])
    assert ledger.alerts.begin(first)
    ledger.alerts.told(first)
    assert [each.channel for each in ledger.alerts.untold(["webhook", "email"])] == ["email"]
    assert ledger.alerts.begin(second)
    ledger.alerts.told(second)
    assert untold(ledger, "webhook", "email") == []


def test_of_two_that_would_tell_at_once_one_does(ledger: Ledger) -> None:
    ledger.alerts.add(PAUSED)
    (due,) = ledger.alerts.untold(["webhook"])
    assert [ledger.alerts.begin(due), ledger.alerts.begin(due)] == [True, False]
    earlier(ledger, tellings.c.tried_at, timedelta(minutes=1))
    (due,) = ledger.alerts.untold(["webhook"])
    assert [ledger.alerts.begin(due), ledger.alerts.begin(due)] == [True, False]


def test_a_channel_that_fails_is_told_again_and_not_for_ever(ledger: Ledger) -> None:
    ledger.alerts.add(PAUSED)
    tries = 0
    for _ in range(MOST_TRIES + 3):
        for due in ledger.alerts.untold(["webhook"]):
            assert ledger.alerts.begin(due)
            tries += 1
        assert untold(ledger) == []  # not at once
        earlier(ledger, tellings.c.tried_at, timedelta(hours=1))
    assert tries == MOST_TRIES


@pytest.mark.parametrize(("after", "again"), [(QUIET / 2, False), (QUIET * 2, True)])
def test_a_cause_that_comes_back_is_told_again_after_a_quiet_hour(
    ledger: Ledger, after: timedelta, again: bool
) -> None:
    ledger.alerts.add(PAUSED)
    (due,) = ledger.alerts.untold(["webhook"])
    ledger.alerts.begin(due)
    ledger.alerts.told(due)
    ledger.alerts.keep([], AlertKind)
    earlier(ledger, alerts.c.ended_at, after)
    assert ledger.alerts.add(PAUSED) is again
    assert ledger.alerts.open() != []
    assert untold(ledger) == (["paused/anthropic"] if again else [])


def test_what_ended_long_ago_is_not_told_to_a_channel_that_missed_it(ledger: Ledger) -> None:
    ledger.alerts.add(PAUSED)
    ledger.alerts.keep([], AlertKind)
    assert untold(ledger) == ["paused/anthropic"]
    earlier(ledger, alerts.c.ended_at, timedelta(days=2))
    assert untold(ledger) == []


@pytest.fixture
def archive(tmp_path: Path, restored_path: None) -> CloudArchive:
    return make_cloud_archive(tmp_path / "project", pages=2)


def hold(engine: Engine, pages: int, reason: str = "answer", batch: str = "a/0001") -> None:
    engine.ledger.holds.failed_many(
        [
            Failure(
                *("letters", "read", "letters", batch, f"{batch}/{n}.png", f"{batch}{n}", reason),
                words="The model refused: it is no letter.",
                hold=True,
            )
            for n in range(pages)
        ]
    )


def test_a_thousand_held_pages_are_one_alert_for_each_reason(archive: CloudArchive) -> None:
    with archive.engine() as engine:
        hold(engine, 700)
        hold(engine, 300, batch="b/0001")
        hold(engine, 1, "expired", batch="c/0001")
        assert look_for_alerts(engine) == 2
        assert look_for_alerts(engine) == 0
        words = {each.cause: each.words for each in engine.ledger.alerts.open()}
    assert words["hold/letters/read/answer"] == (
        "1,000 pages are held at the step read of letters in 2 batches (answer). a/0001/0.png: "
        "The model refused: it is no letter. See them with: recipes held letters"
    )
    assert words["hold/letters/read/expired"].startswith("1 page is held at the step read")


def test_an_alert_ends_when_its_pages_are_tried_again(archive: CloudArchive) -> None:
    with archive.engine() as engine:
        hold(engine, 3)
        look_for_alerts(engine)
        engine.ledger.holds.clear("letters")
        look_for_alerts(engine)
        assert engine.ledger.alerts.open() == []


def test_a_paused_place_is_told_of_unless_it_goes_on_soon(archive: CloudArchive) -> None:
    now = datetime.now(UTC)
    with archive.engine() as engine:
        engine.ledger.pauses.pause("anthropic", "no credit is left")
        engine.ledger.pauses.pause("openai", "too many requests", now + timedelta(minutes=1))
        engine.ledger.pauses.pause("gemini", "the quota is used up", now + timedelta(hours=5))
        words = [each.words for each in find_causes(engine)]
    until = now + timedelta(hours=5)
    assert words == [
        "Nothing is sent to anthropic until you run: recipes resume anthropic. no credit is left",
        f"Nothing is sent to gemini until {until:%Y-%m-%d %H:%M} UTC. the quota is used up",
    ]


def send(engine: Engine, batch: str) -> str:
    task = engine.ledger.tasks.prepare(
        *(f"read-{batch}", "letters", "read", "letters", batch, "anthropic", 1),
        fingerprints={"read": "f"},
        pages=[],
        claims=[batch],
        owner="nobody/1",
        slot=True,
    )
    assert task is not None
    engine.ledger.tasks.sent(task.id, f"msgbatch_{batch}")
    return task.id


def test_batches_that_wait_over_twelve_hours_are_one_alert(archive: CloudArchive) -> None:
    with archive.engine() as engine:
        ids = [send(engine, f"a/000{n}") for n in (1, 2)]
        assert find_causes(engine) == []
        earlier(engine.ledger, task_table.c.sent_at, timedelta(hours=13))
        (cause,) = find_causes(engine)
        assert cause.kind is AlertKind.WAITING
        assert "msgbatch_a/0001 (batch a/0001) was sent 13 hours ago" in cause.words
        assert "(and 1 more)" in cause.words
        for id in ids:
            engine.ledger.tasks.ended(id)
        assert find_causes(engine) == []


def test_a_task_that_waits_for_a_person_is_told_of_with_its_words(archive: CloudArchive) -> None:
    with archive.engine() as engine:
        engine.ledger.tasks.hold(send(engine, "a/0001"), "anthropic does not know it now.")
        (cause,) = find_causes(engine)
    assert cause.kind is AlertKind.HOLD
    assert "anthropic does not know it now." in cause.words


def test_a_cap_is_told_of_when_only_a_person_can_raise_it(tmp_path: Path, restored_path: None):
    archive = make_cloud_archive(tmp_path / "project", spend={"project": 0.5})

    def over(for_good: bool) -> list[Alert]:
        words = "Over the cap by $0.50"
        error = OverCap(words, usd=Decimal(1), over=Decimal("0.5"), for_good=for_good)
        note_over_cap(engine, "letters", error)
        look_for_alerts(engine)
        return engine.ledger.alerts.open()

    with archive.engine() as engine:
        assert over(False) == []
        (alert,) = over(True)
        assert (alert.kind, alert.words) == ("cap", "letters: Over the cap by $0.50.")
    archive.write_project({"batch_from": 1}, spend={"project": 5})
    with archive.engine() as engine:  # raised by a person
        look_for_alerts(engine)
        assert engine.ledger.alerts.open() == []
