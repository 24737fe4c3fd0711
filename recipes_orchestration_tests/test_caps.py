"""Caps in dollars: what would pass one is not sent, and no two processes pass it together."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.adopt import adopt
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.stopping import stop_tasks
from recipes_orchestration.errors import PlaceError
from recipes_orchestration.ledger.reservations import Purse
from recipes_orchestration.rehearsal import Rehearsal

from .archive import find_pages
from .cloud_archive import CloudArchive, advance_once, read_step, run_all
from .cloud_landing import cloud, direct, only_booking, rows_of, until

PRICE = {"input": 0, "output": 1000, "batch_share": 0.5}
"""Of an answer of 100 tokens: $0.05 in a batch, $0.10 by itself."""

MODEL = "claude-sonnet-4-6"


def capped(
    folder: Path, rehearsal: Rehearsal, pages: int = 4, spend: Any = 100, **more: Any
) -> CloudArchive:
    """An archive whose recipe has a cap; questions cost nothing, and answers at most $0.05."""
    archive = cloud(folder, rehearsal, "anthropic", pages, prices={MODEL: PRICE}, **more)
    set_cap(archive, spend)
    return archive


def set_cap(archive: CloudArchive, spend: float | None) -> None:
    more = {} if spend is None else {"spend": spend}
    archive.write_recipe([read_step("anthropic")], **more)


def reserved(engine: Engine) -> Decimal:
    return engine.ledger.reservations.committed(Purse()).reserved


def booked(engine: Engine) -> Decimal:
    return engine.ledger.reservations.committed(Purse()).booked


def test_the_worst_case_of_a_batch_is_reserved_before_it_lands(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with capped(tmp_path, rehearsal).engine() as engine:
        advance_once(engine)
        assert reserved(engine) == Decimal("0.2")
        (row,) = engine.ledger.reservations.all()
        assert (row.recipe, row.step, row.place, row.model) == (
            *("letters", "read", "anthropic"),
            MODEL,
        )


def test_a_closed_batch_holds_nothing_and_is_booked(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with capped(tmp_path, rehearsal).engine() as engine:
        run_all(engine)
        assert reserved(engine) == 0
        assert engine.ledger.reservations.all() == []
        assert 0 < booked(engine) <= Decimal("0.2")
        assert booked(engine) == only_booking(engine).landed_usd


def test_plain_calls_are_reserved_at_the_plain_price(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with capped(tmp_path, rehearsal, spend=0.39).engine() as engine:
        seen = advance_once(engine, now=True)
        assert seen.over is not None
        assert seen.over.usd == Decimal("0.4")
        assert rehearsal.counts("anthropic")["plain_requests"] == {}


def test_over_the_cap_nothing_is_sent_and_the_step_says_by_how_much(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    with capped(tmp_path, rehearsal, spend=0.05).engine() as engine:
        seen = advance_once(engine)
        assert seen.waiting is not None
        assert seen.waiting.startswith("Over the cap by $0.15: this may cost $0.20")
        assert engine.ledger.tasks.open() == []
        assert rehearsal.counts("anthropic")["creates"] == 0


def test_no_page_is_to_blame_for_a_cap(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with capped(tmp_path, rehearsal, spend=0.05).engine() as engine:
        advance_once(engine)
        assert engine.ledger.holds.attempts_of("letters", "letters", "a/0001") == {}


def test_a_run_that_cannot_be_deferred_fails_in_words(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = capped(tmp_path, rehearsal, spend=0.05)
    with archive.engine() as engine, pytest.raises(PlaceError, match=r"Over the cap by \$0\.15"):
        run_all(engine)


def test_a_raised_cap_lets_it_go_on(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = capped(tmp_path, rehearsal, spend=0.05)
    with archive.engine() as engine:
        assert advance_once(engine).over is not None
    set_cap(archive, 0.2)
    with archive.engine() as engine:
        run_all(engine)
        assert len(rows_of(engine)) == 4


@pytest.mark.parametrize("which", ["project", "month"])
def test_the_project_and_the_month_have_caps_too(
    tmp_path: Path, rehearsal: Rehearsal, which: str
) -> None:
    archive = capped(tmp_path, rehearsal, spend=None)
    place = {"batch_from": 1, "settle_seconds": 0}
    archive.write_project(place, prices={MODEL: PRICE}, spend={which: 0.15})
    with archive.engine() as engine:
        seen = advance_once(engine)
        assert seen.waiting is not None
        assert "Over the cap by $0.050000" in seen.waiting
        assert "the project" in seen.waiting


def test_two_processes_cannot_pass_the_cap_together(
    tmp_path: Path, rehearsal: Rehearsal, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECIPES_LEDGER_URL", ledger_url)
    direct(rehearsal, "anthropic", never_ends=True)
    archive = capped(tmp_path, rehearsal, spend=0.25, batch_size=2, pages=12)
    for number in range(4):
        archive.draw([f"b{number}/{page}.png" for page in range(2)])
    with archive.engine() as engine:
        find_pages(engine)
        batches = [row.key for row in engine.ledger.pages.batches("letters")]

    def work(mine: list[str]) -> None:
        with archive.engine() as engine:
            for batch in mine:
                advance_once(engine, batch=batch)

    threads = [threading.Thread(target=work, args=(batches[start::4],)) for start in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with archive.engine() as engine:
        # Of ten batches of $0.10 two fit, whoever asks.
        assert reserved(engine) == Decimal("0.2")
        assert rehearsal.counts("anthropic")["creates"] == 2


def test_an_unknown_price_is_refused_where_there_is_a_cap(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = cloud(tmp_path, rehearsal, "openai", 2)
    archive.write_recipe([read_step("openai", model="our-own-model")], spend=10)
    words = "The price of model our-own-model is not known: give it under prices:"
    with archive.engine() as engine, pytest.raises(PlaceError, match=words):
        run_all(engine)
    assert rehearsal.counts("openai")["creates"] == 0


def test_without_a_cap_nothing_is_reserved(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with capped(tmp_path, rehearsal, spend=None).engine() as engine:
        advance_once(engine)
        assert engine.ledger.reservations.all() == []


def test_what_was_sent_before_there_was_a_cap_is_waited_for(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    archive = capped(tmp_path, rehearsal, spend=None)
    archive.draw(["b/0.png"])
    with archive.engine() as engine:
        find_pages(engine)
        advance_once(engine)
    set_cap(archive, 100)
    with archive.engine() as engine:
        seen = advance_once(engine, batch="b/0001")
        assert seen.waiting is not None
        assert "1 tasks were sent before the recipe letters had a cap" in seen.waiting


def test_an_adopted_batch_holds_its_reservation(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", lose_reply=1)
    archive = capped(tmp_path, rehearsal)
    with archive.engine() as engine:
        advance_once(engine)
        assert engine.ledger.tasks.open()[0].remote_id is None
        assert reserved(engine) == Decimal("0.2")
        until(engine, lambda seen: seen.at_rest)
        assert (reserved(engine), len(rows_of(engine))) == (0, 4)
    assert rehearsal.counts("anthropic")["creates"] == 1


def test_a_refused_batch_holds_nothing(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", refuse_create="credit")
    with capped(tmp_path, rehearsal).engine() as engine:
        advance_once(engine)
        assert reserved(engine) == 0


def test_a_stopped_batch_is_booked_and_holds_nothing(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", never_ends=True)
    with capped(tmp_path, rehearsal).engine() as engine:
        advance_once(engine)
        stop_tasks(engine, engine.ledger.tasks.open())
        assert reserved(engine) == Decimal("0.2")
        while engine.ledger.tasks.open():
            adopt(engine, engine.ledger.tasks.open())
        assert reserved(engine) == 0
