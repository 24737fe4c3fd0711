"""Python steps that ask a model: batched without knowing it, and live where they must."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import MODELS, PROVIDERS, CloudArchive, run_all, values_of
from .cloud_landing import (
    cloud,
    direct,
    failures,
    land_batch,
    only_booking,
    rows_of,
    send_batch,
    sizes,
)

MORE_STEPS = '''
import asyncio
from concurrent.futures import ThreadPoolExecutor


def asks_slowly(page, context):
    """In an event loop of its own."""
    async def ask():
        async with context.async_client as client:
            answer = await client.messages.create(
                model=context.model,
                max_tokens=100,
                messages=[{"role": "user", "content": page.page_id}],
            )
        return {"text": answer.content[0].text}
    return asyncio.run(ask())


def with_a_tool(page, context):
    answer = context.client.messages.create(
        model=context.model,
        max_tokens=100,
        tools=[{"name": "note", "input_schema": {"type": "object", "properties": {}}}],
        tool_choice={"type": "tool", "name": "note"},
        messages=[{"role": "user", "content": page.page_id}],
    )
    return {"stop": answer.stop_reason}


def asks_all_alike(page, context):
    """Every page asks the same, and then something of its own."""
    context.client.messages.create(
        model=context.model, max_tokens=9, messages=[{"role": "user", "content": "Hello"}]
    )
    answer = context.client.messages.create(
        model=context.model, max_tokens=50, messages=[{"role": "user", "content": page.page_id}]
    )
    return {"text": answer.content[0].text}


def embeds_two(page, context):
    answer = context.client.embeddings.create(model=context.model, input=[page.page_id, "x"])
    return {"vectors": len(answer.data)}


def fails_after(page, context):
    context.client.messages.create(
        model=context.model, max_tokens=9, messages=[{"role": "user", "content": page.page_id}]
    )
    raise ValueError("This answer is not what I hoped for.")
'''


@pytest.fixture(autouse=True)
def fresh_module() -> Iterator[None]:
    """Each test loads the steps of its own folder."""
    sys.modules.pop("counting_steps", None)
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("counting_steps", None)


def python_step(function: str, provider: str = "anthropic", **more: Any) -> dict[str, Any]:
    return {
        "name": "read",
        "run": f"counting_steps:{function}",
        "place": provider,
        "model": MODELS[provider],
        **more,
    }


def python_archive(
    folder: Path,
    rehearsal: Rehearsal,
    function: str,
    provider: str = "anthropic",
    pages: int = 3,
    **more: Any,
) -> CloudArchive:
    """An archive with a Python step, and its code open to change."""
    archive = cloud(folder, rehearsal, provider, pages, **more)
    archive.write_recipe([python_step(function, provider)])
    module = archive.folder / "counting_steps.py"
    module.write_text(module.read_text() + MORE_STEPS)
    sys.modules.pop("counting_steps", None)
    return archive


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_python_step_is_batched_without_knowing_it(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    with python_archive(tmp_path, rehearsal, f"ask_{provider}", provider).engine() as engine:
        run_all(engine)
        assert len(rows_of(engine)) == 3
        assert sizes(rehearsal, provider) == [3]
        assert rehearsal.counts(provider)["plain"] == 0
        assert only_booking(engine).lines == {"landed": 3}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_python_step_gives_equal_rows_either_way(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    rows = []
    for way in ("batch", "plain"):
        archive = python_archive(tmp_path / way, rehearsal, f"ask_{provider}", provider)
        with archive.engine() as engine:
            run_all(engine, now=way == "plain")
            table = engine.library.table("letters", "read", "a/0001")
            columns = ["page_id", "key", "value", "model", "tokens_in", "tokens_out"]
            rows.append(table.select(columns).to_pylist())
    assert rows[0] == rows[1]


def test_an_async_client_is_batched(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with python_archive(tmp_path, rehearsal, "asks_slowly").engine() as engine:
        run_all(engine)
        assert len(rows_of(engine)) == 3
        assert rehearsal.counts("anthropic")["plain"] == 0


def test_a_second_request_goes_live_when_the_first_lands(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    with python_archive(tmp_path, rehearsal, "ask_twice").engine() as engine:
        run_all(engine)
        assert all(value["text"] != value["first"] for value in values_of(engine).values())
        assert sizes(rehearsal, "anthropic") == [3]
        assert rehearsal.counts("anthropic")["plain"] == 3
        assert only_booking(engine).lines == {"landed": 3, "live": 3}


def test_a_live_request_is_booked_at_the_price_of_a_plain_call(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    # All the tokens in cost something, and only a plain call costs them in full.
    prices = {MODELS["anthropic"]: {"input": 1, "output": 0, "batch_share": 0}}
    archive = python_archive(tmp_path, rehearsal, "ask_twice", prices=prices)
    with archive.engine() as engine:
        run_all(engine)
        booking = only_booking(engine)
        live = Decimal(booking.tokens_in) / 1_000_000
        assert 0 < booking.landed_usd < live


def test_landing_again_after_a_kill_pays_for_no_live_request_again(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = python_archive(tmp_path, rehearsal, "ask_twice")
    with archive.engine() as engine:
        send_batch(engine)
        # As if it were killed when all had landed and nothing was closed.
        monkeypatch.setattr("recipes_orchestration.engine.adopt.close", _killed)
        with pytest.raises(KeyboardInterrupt):
            land_batch(engine)
        first = rows_of(engine)
    monkeypatch.undo()
    for name, value in rehearsal.environment().items():
        monkeypatch.setenv(name, value)
    with archive.engine() as engine:
        land_batch(engine)
        assert rows_of(engine) == first
        assert rehearsal.counts("anthropic")["plain"] == 3
        assert only_booking(engine).lines == {"landed": 3, "live": 3}
    assert list((archive.folder / ".recipes" / "answers").iterdir()) == []


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_live_requests_are_capped(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = python_archive(
        tmp_path, rehearsal, "ask_twice", pages=4, place={"live_calls": 1}, limits={"tries": 1}
    )
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["read"].landed == 1
        assert all("live_calls" in held.words for held in view.steps["read"].held)
        assert rehearsal.counts("anthropic")["plain"] == 1


def test_the_cap_is_new_for_each_task(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = python_archive(
        tmp_path, rehearsal, "ask_twice", pages=4, place={"live_calls": 2}, batch_size=2
    )
    with archive.engine() as engine:
        for batch in ("a/0001", "a/0002"):
            assert run_all(engine, batch).steps["read"].landed == 2


def test_code_that_asks_otherwise_at_landing_goes_live(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = python_archive(tmp_path, rehearsal, "ask_anthropic")
    with archive.engine() as engine:
        send_batch(engine)
    module = archive.folder / "counting_steps.py"
    module.write_text(module.read_text().replace("max_tokens=100", "max_tokens=200"))
    sys.modules.pop("counting_steps", None)
    with archive.engine() as engine:
        land_batch(engine)
        assert len(rows_of(engine)) == 3
        assert rehearsal.counts("anthropic")["plain"] == 3
        assert only_booking(engine).lines == {"landed": 3, "live": 3}


def test_pages_that_ask_alike_carry_their_own_live_requests(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    prices = {MODELS["anthropic"]: {"input": 1, "output": 1, "batch_share": 0}}
    archive = python_archive(tmp_path, rehearsal, "asks_all_alike", prices=prices)
    with archive.engine() as engine:
        run_all(engine)
        assert sum(rehearsal.counts("anthropic")["requests"].values()) == 1
        assert rehearsal.counts("anthropic")["plain"] == 3
        assert all(row["cost_usd"] > 0 for row in rows_of(engine))
        assert only_booking(engine).lines == {"landed": 1, "live": 3}


def test_code_that_offers_a_tool_sees_its_call(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with python_archive(tmp_path, rehearsal, "with_a_tool").engine() as engine:
        run_all(engine)
        assert {value["stop"] for value in values_of(engine).values()} == {"tool_use"}


def test_code_may_ask_for_several_vectors_at_once(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = python_archive(tmp_path, rehearsal, "embeds_two", "openai")
    archive.write_recipe([python_step("embeds_two", "openai", model="text-embedding-3-small")])
    with archive.engine() as engine:
        run_all(engine)
        assert {value["vectors"] for value in values_of(engine).values()} == {2}


def test_code_that_fails_on_an_answer_is_waste(tmp_path: Path, rehearsal: Rehearsal) -> None:
    with python_archive(tmp_path, rehearsal, "fails_after").engine() as engine:
        send_batch(engine)
        land_batch(engine)
        assert rows_of(engine) == []
        assert all("not what I hoped for" in row.words for row in failures(engine).values())
        assert only_booking(engine).wasted_usd > 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_truncated_answer_is_no_result_of_a_python_step(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    direct(rehearsal, provider, truncation_share=1.0)
    with python_archive(tmp_path, rehearsal, f"ask_{provider}", provider).engine() as engine:
        send_batch(engine)
        land_batch(engine)
        assert rows_of(engine) == []
        assert {row.reason for row in failures(engine).values()} == {"answer"}
