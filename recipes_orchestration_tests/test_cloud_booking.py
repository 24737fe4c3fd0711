"""What batches and plain calls cost, booked once however often they land."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.rehearsal import Rehearsal

from .archive import find_pages
from .cloud_archive import MODELS, PROVIDERS, CloudArchive, read_step, run_all
from .cloud_landing import (
    cloud,
    direct,
    failures,
    land_batch,
    only_booking,
    reopen_task,
    rows_of,
    send_batch,
)

PRICES = {"input": 2, "output": 10, "cached": 1, "batch_share": 0.25}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_costs_half_of_plain_calls(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    usd = {}
    for way in ("batch", "plain"):
        with cloud(tmp_path / way, rehearsal, provider, 3).engine() as engine:
            run_all(engine, now=way == "plain")
            usd[way] = only_booking(engine).landed_usd
    assert usd["batch"] * 2 == usd["plain"] > 0


@pytest.mark.parametrize(
    ("provider", "basis"),
    [("anthropic", "batch"), ("openai", "batch"), ("gemini", "batch"), ("bedrock", "assumed")],
)
def test_a_booking_says_where_its_price_comes_from(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, basis: str
) -> None:
    with cloud(tmp_path, rehearsal, provider, 2).engine() as engine:
        run_all(engine)
        booking = only_booking(engine)
        assert (booking.basis, booking.mode, booking.place) == (basis, "batch", provider)
        assert {row["price"] for row in rows_of(engine)} == {basis}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_prices_of_the_project_come_first(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    prices = {MODELS[provider]: PRICES}
    with cloud(tmp_path, rehearsal, provider, 2, prices=prices).engine() as engine:
        run_all(engine)
        booking = only_booking(engine)
        assert booking.basis == "project"
        full = Decimal(2 * booking.tokens_in + 10 * booking.tokens_out) / 1_000_000
        assert booking.landed_usd == full / 4


def test_a_model_without_a_known_price_lands_without_a_cost(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    steps = [read_step("openai", model="our-own-model")]
    with cloud(tmp_path, rehearsal, "openai", 2, steps=steps).engine() as engine:
        run_all(engine)
        assert [row["cost_usd"] for row in rows_of(engine)] == [None, None]
        booking = only_booking(engine)
        assert booking.basis == "unknown"
        assert booking.tokens_in > 0


def test_cached_tokens_have_their_own_price(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = {MODELS["anthropic"]: PRICES}
    with cloud(tmp_path, rehearsal, "anthropic", 1, prices=prices).engine() as engine:
        place: Any = engine.place("anthropic")
        fetch = place._provider.results

        def cached(batch_id: str) -> Iterator[bytes]:
            # The rehearsed provider keeps no cache.
            for raw in fetch(batch_id):
                line = json.loads(raw)
                usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 20}
                line["result"]["message"]["usage"] = usage
                yield json.dumps(line).encode()

        monkeypatch.setattr(place._provider, "results", cached)
        run_all(engine)
        booking = only_booking(engine)
        assert (booking.tokens_in, booking.tokens_out, booking.tokens_cached) == (110, 20, 100)
        assert booking.landed_usd == Decimal(10 * 2 + 100 * 1 + 20 * 10) / 4 / 1_000_000


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_that_lands_three_times_is_booked_once(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, error_lines=1)
    archive = cloud(tmp_path, rehearsal, provider, 4)
    with archive.engine() as engine:
        task = send_batch(engine)
    for _ in range(3):
        with archive.engine() as engine:
            land_batch(engine)
            rows = rows_of(engine)
            assert len(rows) == 3
            booking = only_booking(engine)
            assert booking.lines == {"landed": 3, "errored": 1}
            (failure,) = failures(engine).values()
            assert (failure.attempts, failure.held) == (1, False)
            reopen_task(engine, task.id)
    assert rehearsal.counts(provider)["creates"] == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_results_are_fetched_once(tmp_path: Path, rehearsal: Rehearsal, provider: str) -> None:
    archive = cloud(tmp_path, rehearsal, provider, 3)
    with archive.engine() as engine:
        task = send_batch(engine)
        land_batch(engine)
        before = rehearsal.counts(provider)["results"]
        reopen_task(engine, task.id)
        land_batch(engine)
        assert rehearsal.counts(provider)["results"] == before


@pytest.mark.parametrize("provider", PROVIDERS)
def test_landed_rows_and_waste_make_up_all_that_was_billed(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, truncation_share=0.5)
    prices = {MODELS[provider]: PRICES}
    with cloud(tmp_path, rehearsal, provider, 12, prices=prices).engine() as engine:
        send_batch(engine)
        land_batch(engine)
        booking = only_booking(engine)
        assert 0 < len(rows_of(engine)) < 12
        assert booking.wasted_usd > 0
        billed = Decimal(2 * booking.tokens_in + 10 * booking.tokens_out) / 4 / 1_000_000
        assert booking.landed_usd + booking.wasted_usd == billed


def same_question(archive: CloudArchive) -> None:
    (archive.folder / "prompts" / "read.md").write_text("Tell a story.")


@pytest.mark.parametrize("way", ["batch", "plain"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_equal_questions_of_different_pages_are_asked_and_paid_once(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, way: str
) -> None:
    archive = cloud(tmp_path, rehearsal, provider, 4)
    same_question(archive)
    with archive.engine() as engine:
        run_all(engine, now=way == "plain")
        counts = rehearsal.counts(provider)
        asked = counts["requests"] if way == "batch" else counts["plain_requests"]
        assert sum(asked.values()) == 1
        rows = rows_of(engine)
        assert len({row["value"] for row in rows}) == 1
        assert len(rows) == 4
        assert sorted(row["cost_usd"] > 0 for row in rows) == [False, False, False, True]
        assert only_booking(engine).lines == {"landed": 1}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_equal_pages_are_asked_and_paid_once(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = cloud(tmp_path, rehearsal, provider, 2)
    for number in range(3):
        shutil.copy(archive.pages / "a/0000.png", archive.pages / f"a/copy{number}.png")
    with archive.engine() as engine:
        find_pages(engine)
        run_all(engine)
        batches = engine.ledger.pages.batches("letters")
        for batch in batches[1:]:
            run_all(engine, batch.key)
        assert sum(rehearsal.counts(provider)["requests"].values()) == 2
        every = [row for batch in batches for row in rows_of(engine, batch=batch.key)]
        assert len(every) == 5
        assert sum(row["cost_usd"] > 0 for row in every) == 2


def test_a_task_of_another_process_is_booked_by_who_lands_it(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = cloud(tmp_path, rehearsal, "openai", 2)
    with archive.engine() as engine:
        send_batch(engine)
    with archive.engine() as other:
        land_batch(other)
        assert only_booking(other).lines == {"landed": 2}


def left_files(engine: Engine) -> list[Path]:
    """Files of the place on this machine."""
    folder = engine.project.folder / ".recipes"
    kept = ("spool", "answers")
    return [path for name in kept for path in (folder / name).rglob("*") if path.is_file()]


@pytest.mark.parametrize("way", ["batch", "plain"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_file_of_requests_or_answers_is_left(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, way: str
) -> None:
    with cloud(tmp_path, rehearsal, provider, 3).engine() as engine:
        run_all(engine, now=way == "plain")
        assert left_files(engine) == []


def test_files_of_requests_and_answers_are_for_nobody_else(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, set[int]] = {}
    with cloud(tmp_path, rehearsal, "openai", 3).engine() as engine:
        place: Any = engine.place("openai")
        make = place._provider.result_line

        def look(*given: Any) -> bytes:
            for path in left_files(engine):
                folders = [path.parent, *path.parent.parents]
                outside = folders[: folders.index(engine.project.folder / ".recipes")]
                closed = any(each.stat().st_mode & 0o077 == 0 for each in [path, *outside])
                seen.setdefault(path.parts[-2 if "answers" in path.parts else -3], set()).add(
                    0 if closed else path.stat().st_mode
                )
            return make(*given)

        monkeypatch.setattr(place._provider, "result_line", look)
        run_all(engine, now=True)
    assert seen == {"answers": {0}, "spool": {0}}
