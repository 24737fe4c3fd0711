"""Steps at the four providers, end to end through their real SDKs over real HTTP."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import PROVIDERS, run_all, values_of
from .cloud_landing import cloud


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_step_lands_through_a_batch(tmp_path: Path, rehearsal: Rehearsal, provider: str) -> None:
    archive = cloud(tmp_path, rehearsal, provider)
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["read"].landed == 5
        assert len({str(value) for value in values_of(engine).values()}) == 5
        rows = engine.library.table("letters", "read", "a/0001").to_pylist()
        assert all(row["tokens_in"] > 0 and row["cost_usd"] > 0 for row in rows)
        (booking,) = engine.ledger.bookings.all()
        assert booking.mode == "batch"
        assert booking.landed_usd == sum((row["cost_usd"] for row in rows), Decimal(0))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plain_calls_give_the_same_rows_as_a_batch(
    tmp_path: Path,
    rehearsal: Rehearsal,
    provider: str,
) -> None:
    values = []
    for way in ("batch", "plain"):
        archive = cloud(tmp_path / way, rehearsal, provider)
        with archive.engine() as engine:
            run_all(engine, now=way == "plain")
            (booking,) = engine.ledger.bookings.all()
            assert booking.mode == way
            table = engine.library.table("letters", "read", "a/0001")
            columns = ["page_id", "key", "value", "model", "tokens_in", "tokens_out"]
            values.append(table.select(columns).to_pylist())
    assert values[0] == values[1]
