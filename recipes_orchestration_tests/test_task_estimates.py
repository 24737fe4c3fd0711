"""What each task was thought to cost when it was sent, and the alert for one that cost more."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.alerts import look_for_alerts
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.ledger.bookings import Booking
from recipes_orchestration.rehearsal import Rehearsal, anthropic_answers

from .archive import find_pages
from .cloud_archive import MODELS, PROVIDERS, CloudArchive, read_step
from .cloud_landing import cloud, direct
from .command_runs import recipes
from .test_sheet_estimates import draw_pages, line_of, off, run

pytestmark = pytest.mark.usefixtures("restored_path")

CLOSE = 0.15
SECOND = "a/0002"
# Answers cost nearly all.
PRICE = {MODELS["anthropic"]: {"input": 0.001, "output": 100, "batch_share": 0.5}}


def make(
    folder: Path,
    rehearsal: Rehearsal,
    provider: str = "anthropic",
    *,
    pages: int = 10,
    step: dict[str, Any] | None = None,
    **more: Any,
) -> CloudArchive:
    """Two batches of pages of very different sizes."""
    steps = [step or read_step(provider, image={})]
    archive = cloud(folder, rehearsal, provider, pages, batch_size=pages // 2, steps=steps, **more)
    draw_pages(archive, pages)
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def estimate_of(engine: Engine, batch: str = SECOND) -> Decimal:
    (record,) = [each for each in engine.ledger.records.last() if each.batch == batch]
    assert record.estimate_usd is not None
    return record.estimate_usd


def bill_of(engine: Engine, batch: str = SECOND) -> Booking:
    (bill,) = [each for each in engine.ledger.bookings.all() if each.batch == batch]
    return bill


def alerts(engine: Engine) -> list[str]:
    look_for_alerts(engine)
    return [each.words for each in engine.ledger.alerts.open()]


@pytest.mark.parametrize("now", [False, True], ids=["batch", "plain"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_task_s_estimate_is_close_to_its_bill_once_one_has_landed(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, now: bool
) -> None:
    with make(tmp_path, rehearsal, provider).engine() as engine:
        run(engine, "a/0001", now=now)
        run(engine, SECOND, now=now)
        bill = bill_of(engine)
        assert bill.mode == ("plain" if now else "batch")
        assert off(estimate_of(engine), bill.landed_usd) < CLOSE
        assert alerts(engine) == []


def test_a_task_s_estimate_is_close_to_that_of_the_sheet(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    with make(tmp_path, rehearsal).engine() as engine:
        first = line_of(engine, batches=("a/0001",)).usd
        run(engine, "a/0001")
        # What has landed is seen by a sheet over all batches.
        then = line_of(engine).usd
        run(engine, SECOND)
        for batch, usd in (("a/0001", first), (SECOND, then)):
            assert usd is not None
            assert off(estimate_of(engine, batch), usd.mid) < 0.03


def test_before_anything_has_landed_answers_are_taken_for_the_longest_allowed(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    with make(tmp_path, rehearsal, prices=PRICE).engine() as engine:
        run(engine, "a/0001")
        # 5 answers of 100 tokens.
        assert off(estimate_of(engine, "a/0001"), Decimal("0.025")) < 0.01


def test_a_model_without_a_known_price_has_no_estimate(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    step = read_step("openai", model="our-own-model")
    with make(tmp_path, rehearsal, "openai", step=step).engine() as engine:
        run(engine, "a/0001")
        (record,) = engine.ledger.records.last()
        assert record.estimate_usd is None
        assert alerts(engine) == []


def test_a_batch_that_cost_more_than_its_estimate_is_told_of(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make(tmp_path, rehearsal, pages=40, prices=PRICE)
    with archive.engine() as engine:
        run(engine, "a/0001")
        assert alerts(engine) == []
        tokens_of = anthropic_answers.tokens_of
        monkeypatch.setattr(anthropic_answers, "tokens_of", lambda text: 3 * tokens_of(text))
        run(engine, SECOND)
        bill, estimate = bill_of(engine), estimate_of(engine)
        assert bill.landed_usd > 2 * estimate
        (words,) = alerts(engine)
    assert words.startswith(f"A task of letters/read ({MODELS['anthropic']}, batch a/0002) cost $")
    assert f"and was estimated at ${estimate:.6f}. See: recipes tasks letters --all" in words
    tasks = recipes(archive, "tasks", "--all", "--json").document["tasks"]
    told = {each["batch"]: Decimal(each["estimate_usd"]) for each in tasks}
    assert told[SECOND] == estimate


def test_a_batch_that_cost_a_little_more_is_within_its_estimate(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(tmp_path, rehearsal, pages=40, prices=PRICE).engine() as engine:
        run(engine, "a/0001")
        tokens_of = anthropic_answers.tokens_of
        monkeypatch.setattr(
            anthropic_answers, "tokens_of", lambda text: round(1.1 * tokens_of(text))
        )
        run(engine, SECOND)
        assert bill_of(engine).landed_usd > estimate_of(engine)
        assert alerts(engine) == []


def test_failed_lines_make_no_estimate_wrong(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, "anthropic", error_lines=10, batches=1)
    with make(tmp_path, rehearsal, pages=40, limits={"tries": 1}, prices=PRICE).engine() as engine:
        run(engine, "a/0001")
        run(engine, SECOND)
        assert off(estimate_of(engine), bill_of(engine).landed_usd) < CLOSE
