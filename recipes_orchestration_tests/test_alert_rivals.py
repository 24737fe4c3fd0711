"""Several processes look for alerts at once, on SQLite and on PostgreSQL: each is told once."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recipes_orchestration.ledger.alerts import AlertKind, Cause
from recipes_orchestration.ledger.database import Ledger, open_ledger

from . import alert_rivals
from .alert_receivers import receiver
from .cloud_archive import make_cloud_archive
from .ledger_rivals import race

PLACES = ("anthropic", "openai", "gemini", "bedrock")


@pytest.mark.slow
def test_of_rivals_that_find_a_cause_exactly_one_raises_the_alert(
    ledger: Ledger, ledger_url: str
) -> None:
    answers = race(4, alert_rivals.keep, ledger_url, 15)
    assert [sum(turn) for turn in zip(*answers, strict=True)] == [1] * 15
    assert len(ledger.alerts.open()) == 15


@pytest.mark.slow
@pytest.mark.usefixtures("restored_path")
def test_rivals_that_look_and_tell_at_once_tell_each_alert_once(
    tmp_path: Path, ledger_url: str
) -> None:
    archive = make_cloud_archive(tmp_path / "project", alerts={"webhook": {"url_env": "HOOK"}})
    with open_ledger(ledger_url) as ledger:
        for place in PLACES:
            ledger.pauses.pause(place, "No credit is left.")
    with receiver() as hook:
        answers = race(3, alert_rivals.look_and_tell, archive.folder, ledger_url, hook.url)
    assert answers == [[], [], []]
    assert Counter(post["cause"] for post in hook.posts) == {f"paused/{each}": 1 for each in PLACES}


def test_what_another_process_has_found_meanwhile_does_not_end(ledger: Ledger) -> None:
    looked_at = datetime.now(UTC) - timedelta(seconds=5)
    ledger.alerts.add(Cause("cap/project/1", AlertKind.CAP, "over the cap"))
    ledger.alerts.keep([], AlertKind, looked_at)
    assert len(ledger.alerts.open()) == 1
    ledger.alerts.keep([], AlertKind)
    assert ledger.alerts.open() == []
