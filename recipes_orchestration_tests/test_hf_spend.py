"""Money of jobs on the rehearsed hub: reserved under a cap, estimated, shared out over the rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.stopping import land_stopped, stop_tasks
from recipes_orchestration.ledger.reservations import Purse
from recipes_orchestration.places.hf_jobs import hub as hf_hub
from recipes_orchestration.rehearsal import Rehearsal

from .archive import find_pages
from .hub_archive import advance_to_rest, creates, hub_archive, sent, until
from .job_archive import BATCH, JobArchive, chain, first_stage

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

# The hub says $0.006667 a minute for a t4-small, and a job of 30 minutes may be ended in the 31st.
MINUTE = Decimal("0.006667")
WORST = 31 * MINUTE


def capped(folder: Path, hub: Rehearsal, cap: float, names: list[str] | None = None) -> JobArchive:
    archive = hub_archive(folder, hub, names, flavor="t4-small", timeout_minutes=30)
    archive.write_recipe(chain("hf_jobs"), spend=cap)
    return archive


def held(engine: Engine) -> tuple[Decimal, Decimal]:
    committed = engine.ledger.reservations.committed(Purse())
    return committed.booked, committed.reserved


def cost_of_rows(engine: Engine) -> Decimal:
    rows = [
        row["cost_usd"]
        for step in ("size", "area")
        for row in engine.library.table("letters", step, BATCH, ["cost_usd"]).to_pylist()
    ]
    return sum(rows, Decimal(0))


def test_a_job_that_may_pass_the_cap_is_not_sent(hub: Rehearsal, tmp_path: Path) -> None:
    with capped(tmp_path, hub, 0.2).engine() as engine:
        seen = advance(engine, first_stage(engine), BATCH)
        assert seen.over is not None
        assert seen.over.usd == WORST
        assert creates(hub) == 0


def test_a_job_s_whole_time_is_reserved_until_it_has_landed(hub: Rehearsal, tmp_path: Path) -> None:
    with capped(tmp_path, hub, 0.21, ["a/1.png", "a/slow.png"]).engine() as engine:
        sent(engine)
        assert held(engine) == (0, WORST)
        stop_tasks(engine, engine.ledger.tasks.open())
        (task,) = engine.ledger.tasks.open()
        until(lambda: land_stopped(engine, task.id)[0])
        booked, reserved = held(engine)
        assert reserved == 0
        assert booked <= WORST  # one that was stopped before it began costs nothing


def test_the_rows_and_the_waste_are_what_was_booked(hub: Rehearsal, tmp_path: Path) -> None:
    names = ["a/1.png", "a/2.png", "a/fails.png"]
    archive = capped(tmp_path, hub, 10, names)
    with archive.engine() as engine:
        advance_to_rest(engine)
        bills = engine.ledger.bookings.all()
        landed = sum((each.landed_usd for each in bills), Decimal(0))
        wasted = sum((each.wasted_usd for each in bills), Decimal(0))
        assert landed > 0
        assert wasted > 0
        assert cost_of_rows(engine) == landed
        assert held(engine) == (landed + wasted, 0)


def test_a_job_is_billed_at_the_price_at_which_it_was_sent(
    hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = capped(tmp_path, hub, 10)
    with archive.engine() as engine:
        sent(engine)
    monkeypatch.setattr(hf_hub.Hub, "prices", lambda _: {"t4-small": (5_000_000, "minute")})
    with archive.engine() as engine:
        advance_to_rest(engine)
        (bill,) = engine.ledger.bookings.all()
        assert (bill.landed_usd, bill.basis) == (MINUTE, "listed")


def test_a_job_is_estimated_by_what_pages_took_before(hub: Rehearsal, tmp_path: Path) -> None:
    archive = capped(tmp_path, hub, 10)
    with archive.engine() as engine:
        advance_to_rest(engine)
        (first,) = engine.ledger.records.last()
        assert first.estimate_usd is None
        archive.draw(["b/1.png"])
        find_pages(engine)
        assert advance(engine, first_stage(engine), "b/0001").remote
        newest = engine.ledger.records.last()[0]
        # A page takes no minute, and the job starts before it.
        assert newest.estimate_usd == 2 * MINUTE
