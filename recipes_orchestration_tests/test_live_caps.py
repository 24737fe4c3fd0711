"""Live calls of Python steps under a cap: reserved before they are sent, so that none passes it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.adopt import adopt
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.errors import PlaceError
from recipes_orchestration.ledger.reservations import Purse
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import MODELS, CloudArchive, advance_once, run_all
from .cloud_landing import failures, land_batch, only_booking, rows_of, send_batch
from .test_cloud_python_steps import python_archive, python_step

# The question costs nothing. An answer of at most 100 tokens in a batch and one of at most 50 live
# cost at most $0.05 each.
PRICE = {MODELS["anthropic"]: {"input": 0, "output": 1000, "batch_share": 0.5}}
EACH = Decimal("0.05")


@pytest.fixture(autouse=True)
def fresh_module() -> Iterator[None]:
    sys.modules.pop("counting_steps", None)
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("counting_steps", None)


def capped(
    folder: Path, rehearsal: Rehearsal, cap: Decimal | float, pages: int = 3, **more: Any
) -> CloudArchive:
    archive = python_archive(folder, rehearsal, "ask_twice", pages=pages, prices=PRICE, **more)
    set_cap(archive, cap)
    return archive


def set_cap(archive: CloudArchive, cap: Decimal | float | None) -> None:
    spend = {} if cap is None else {"spend": float(cap)}
    archive.write_recipe([python_step("ask_twice")], **spend)


def committed(engine: Engine) -> Decimal:
    held = engine.ledger.reservations.committed(Purse())
    return held.booked + held.reserved


def live_calls(rehearsal: Rehearsal) -> int:
    return rehearsal.counts("anthropic")["plain"]


def test_live_calls_within_the_cap_land_and_leave_nothing_reserved(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    with capped(tmp_path, rehearsal, 1).engine() as engine:
        run_all(engine)
        assert (len(rows_of(engine)), live_calls(rehearsal)) == (3, 3)
        assert engine.ledger.reservations.all() == []
        assert only_booking(engine).lines == {"landed": 3, "live": 3}


def test_the_worst_case_of_a_live_call_is_reserved_while_it_is_out(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Decimal] = []
    with capped(tmp_path, rehearsal, 1, pages=1).engine() as engine:
        send_batch(engine)
        book = engine.ledger.reservations
        add = type(book).add

        def noted(*arguments: Any) -> None:
            before = committed(engine)
            add(*arguments)
            seen.append(committed(engine) - before)

        monkeypatch.setattr(type(book), "add", noted)
        land_batch(engine)
        assert seen == [EACH]


def test_a_live_call_that_would_pass_the_cap_is_not_sent(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    # The batch fits with a cent to spare.
    cap = 3 * EACH + Decimal("0.01")
    archive = capped(tmp_path, rehearsal, cap)
    with archive.engine() as engine:
        send_batch(engine)
    # Less than what the answers cost and one live call may.
    set_cap(archive, EACH)
    with archive.engine() as engine:
        adopted = land_batch(engine)
        assert adopted.failure is None or "Over the cap" in adopted.failure
        assert live_calls(rehearsal) < 3
        assert committed(engine) <= EACH
        (task,) = engine.ledger.tasks.open()
        assert task.state == "open"
        assert failures(engine) == {}  # no page is to blame


def test_a_raised_cap_lets_the_answers_land_and_nothing_is_paid_again(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = capped(tmp_path, rehearsal, 3 * EACH)
    with archive.engine() as engine:
        send_batch(engine)
    set_cap(archive, 0.001)
    with archive.engine() as engine:
        adopted = land_batch(engine)
        assert adopted.failure is not None
        assert adopted.failure.startswith("letters/read cannot land all of its answers. Over the")
        engine.fetch_again.clear()
        with pytest.raises(PlaceError, match="Over the cap"):
            run_all(engine)
        assert live_calls(rehearsal) == 0
    set_cap(archive, 1)
    with archive.engine() as engine:
        run_all(engine)
        assert (len(rows_of(engine)), live_calls(rehearsal)) == (3, 3)
        assert rehearsal.counts("anthropic")["creates"] == 1
        assert engine.ledger.reservations.all() == []
        only_booking(engine)


def test_answers_that_cannot_all_land_are_closed_while_the_error_is_kept(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = capped(tmp_path, rehearsal, 3 * EACH)
    with archive.engine() as engine:
        send_batch(engine)
    set_cap(archive, 0.001)
    with archive.engine() as engine:
        gc.disable()
        try:
            with pytest.raises(PlaceError, match="Over the cap") as kept:
                run_all(engine)
            files = [each.resolve().name for each in Path("/proc/self/fd").iterdir()]
            assert kept.value is not None
        finally:
            gc.enable()
    assert [name for name in files if "answers" in name] == []


def test_the_own_worst_case_of_a_batch_is_not_in_the_way_of_its_live_calls(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    # With the batch's worst case still reserved no live call would fit.
    with capped(tmp_path, rehearsal, 3 * EACH).engine() as engine:
        run_all(engine)
        assert (len(rows_of(engine)), live_calls(rehearsal)) == (3, 3)
        assert committed(engine) <= 3 * EACH


@pytest.mark.parametrize("cap", ["0.2", "0.31", "0.4"])
def test_plain_calls_and_their_live_calls_stay_under_the_cap_together(
    tmp_path: Path, rehearsal: Rehearsal, cap: str
) -> None:
    archive = capped(tmp_path, rehearsal, Decimal(cap), limits={"land_every_pages": 1})
    with archive.engine() as engine:
        for _ in range(200):
            advance_once(engine, now=True)
            assert committed(engine) <= Decimal(cap)
            if not engine.ledger.tasks.open():
                break
        # Three answers of at most $0.10 are the least that must fit.
        assert len(rows_of(engine)) == (0 if cap == "0.2" else 3)
        assert live_calls(rehearsal) == (0 if cap == "0.2" else 6)


def test_a_run_that_ends_while_a_live_call_waits_for_money_loses_no_answer(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = capped(tmp_path, rehearsal, 1)
    with archive.engine() as engine:
        advance_once(engine, now=True)
        recipe = replace(engine.project.recipe("letters"), spend=Decimal("0.001"))
        engine.project = replace(engine.project, recipes={"letters": recipe})
        with pytest.raises(PlaceError, match="Over the cap"):
            run_all(engine, now=True)
        (task,) = engine.ledger.tasks.open()
        assert live_calls(rehearsal) == 3  # the calls themselves, and none beside them
    with archive.engine() as engine:
        run_all(engine)
        assert len(rows_of(engine)) == 3
        assert only_booking(engine).task_id == task.id
    assert live_calls(rehearsal) == 6


def test_what_cannot_be_bounded_is_refused_in_words(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = python_archive(
        tmp_path, rehearsal, "ask_anthropic", pages=1, prices=PRICE, limits={"tries": 1}
    )
    archive.write_recipe([python_step("ask_anthropic")], spend=1)
    with archive.engine() as engine:
        send_batch(engine)
    module = archive.folder / "counting_steps.py"
    module.write_text(module.read_text().replace("model=context.model, max", 'model="no", max'))
    sys.modules.pop("counting_steps", None)
    with archive.engine() as engine:
        adopt(engine, engine.ledger.tasks.open())
        (failed,) = failures(engine).values()
        assert "there is a cap" in failed.words
        assert "The price of model no is not known" in failed.words
        assert live_calls(rehearsal) == 0
