"""What the sheet says that a run will cost, against what the rehearsed providers then bill."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.sheet import Scope, Sheet, SheetLine, sheet_of
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.stages import stages_of

from .archive import find_pages
from .cloud_archive import PROVIDERS, CloudArchive, read_step
from .cloud_landing import cloud

CLOSE = 0.15
# A model of each provider that counts pictures otherwise than the one of the other tests.
OTHERS = {
    "anthropic": "claude-opus-4-8",
    "openai": "gpt-4o",
    "gemini": "gemini-3-flash-preview",
    "bedrock": "amazon.nova-lite-v1:0",
}
QUESTION = "Read the letter {page_id} as it is written.\n" + "Keep every line as it stands.\n" * 20
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "description": "The heading. " * 10}},
    "required": ["title"],
    "additionalProperties": False,
}


def draw_pages(archive: CloudArchive, number: int) -> None:
    """Pages of very different shapes, half of them larger than they are sent."""
    draw = random.Random(7)
    for at in range(number):
        size = (draw.randint(200, 2600), draw.randint(200, 2600))
        image = Image.new("1", size, 1)
        ImageDraw.Draw(image).text((9, 9), f"page {at}", fill=0)
        image.save(archive.pages / "a" / f"{at:04d}.png")


def make(
    folder: Path, rehearsal: Rehearsal, provider: str, step: dict[str, Any], pages: int = 15
) -> CloudArchive:
    archive = cloud(folder, rehearsal, provider, pages, batch_size=5, steps=[step])
    (archive.folder / "prompts" / "read.md").write_text(QUESTION)
    draw_pages(archive, pages)
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def sheet(engine: Engine, **scope: Any) -> Sheet:
    return sheet_of(engine, engine.project.recipe("letters"), Scope(**scope))


def line_of(engine: Engine, **scope: Any) -> SheetLine:
    (line,) = sheet(engine, **scope).lines
    return line


def run(engine: Engine, *batches: str, now: bool = False) -> None:
    for stage in stages_of(engine.project.recipe("letters")):
        for batch in batches:
            run_stage(engine, stage, batch, poll_seconds=0.1, now=now)


def booked(engine: Engine, *batches: str) -> Decimal:
    bookings = [each for each in engine.ledger.bookings.all("letters") if each.batch in batches]
    return sum((each.landed_usd for each in bookings), Decimal(0))


def off(estimate: Decimal, truth: Decimal) -> float:
    return abs(float(estimate / truth) - 1)


@pytest.mark.parametrize(
    ("kind", "other"), [("text", False), ("schema", False), ("image", False), ("image", True)]
)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_estimate_is_close_to_what_is_booked(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, kind: str, other: bool
) -> None:
    more: dict[str, Any] = {"image": {} if kind == "image" else False}
    if kind == "schema":
        more["schema"] = SCHEMA
    if other:
        more["model"] = OTHERS[provider]
    archive = make(tmp_path, rehearsal, provider, read_step(provider, **more))
    with archive.engine() as engine:
        first = line_of(engine)
        run(engine, "a/0001")
        assert first.tokens_in is not None
        assert first.usd is not None
        then = line_of(engine)
        assert then.usd is not None
        assert then.pages == 10
        run(engine, "a/0002", "a/0003")
        paid = booked(engine, "a/0002", "a/0003")
        tokens = sum(each.tokens_in for each in engine.ledger.bookings.all("letters"))
        assert off(then.usd.mid, paid) < CLOSE
        assert then.usd.low <= paid <= then.usd.high
        # Before anything has landed the question is known, and the answer is not.
        assert abs(first.tokens_in.mid / tokens - 1) < CLOSE
        assert first.usd.low < booked(engine, "a/0001", "a/0002", "a/0003") < first.usd.high


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plain_calls_are_estimated_at_their_own_price(
    tmp_path: Path, rehearsal: Rehearsal, provider: str
) -> None:
    archive = make(tmp_path, rehearsal, provider, read_step(provider, image={}))
    with archive.engine() as engine:
        run(engine, "a/0001")
        line = line_of(engine, now=True)
        assert line.usd == line.plain
        assert line.batch is not None
        assert line.usd is not None
        assert line.batch.mid * 2 == pytest.approx(line.usd.mid)
        run(engine, "a/0002", "a/0003", now=True)
        assert off(line.usd.mid, booked(engine, "a/0002", "a/0003")) < CLOSE


def test_an_estimate_sends_nothing_and_needs_no_key(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make(tmp_path, rehearsal, "anthropic", read_step("anthropic", image={}), pages=9)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with archive.engine() as engine:
        line = line_of(engine)
        assert engine.places == {}
        assert engine.ledger.tasks.open() == []
    assert line.usd is not None
    assert line.sampled == 9
    counts = rehearsal.counts("anthropic")
    assert not counts["requests"]
    assert not counts["batches"]
    assert not (archive.folder / ".recipes" / "spool").exists()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_python_steps_first_request_is_estimated(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    step = {
        "name": "read",
        "run": f"counting_steps:ask_{provider}",
        "place": provider,
        "model": read_step(provider)["model"],
    }
    archive = make(tmp_path, rehearsal, provider, step, pages=9)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with archive.engine() as engine:
        line = line_of(engine)
    assert line.sampled == 9, line.words
    assert line.tokens_in is not None
    assert line.tokens_in.mid > 9
    assert not rehearsal.counts(provider)["requests"]


def test_at_most_twenty_pages_are_looked_at(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = make(tmp_path, rehearsal, "openai", read_step("openai"), pages=25)
    with archive.engine() as engine:
        assert line_of(engine).sampled == 12
        run(engine, "a/0001", "a/0002")
        line = line_of(engine)
        assert (line.sampled, line.pages, line.batches) == (12, 15, 3)


def test_a_step_whose_text_is_not_there_yet_is_estimated_with_a_page_of_text(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    steps = [
        read_step("anthropic", image={}, run="read"),
        {**read_step("openai"), "name": "names", "run": "names", "needs": ["read"]},
    ]
    for step in steps:
        step.pop("prompt")
    steps[1].pop("image")
    archive = cloud(tmp_path, rehearsal, "anthropic", 6, steps=steps)
    with archive.engine() as engine:
        read, names = sheet(engine).lines
        assert read.usd is not None
        assert names.usd is not None
        assert names.tokens_in is not None
        assert names.tokens_in.mid > 6 * 600
        assert any("read is not there yet" in each for each in names.words)


def test_the_time_is_that_of_earlier_batches_as_many_at_once_as_may_be_open(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = cloud(tmp_path, rehearsal, "openai", 9, batch_size=2, place={"max_open": 2})
    with archive.engine() as engine:
        assert line_of(engine).seconds is None
        run(engine, "a/0001")
        (took,) = engine.ledger.times.of_batches("letters", "read", "openai")
        assert line_of(engine).seconds == 2 * took > 0
        assert line_of(engine, now=True).seconds is None


def test_an_unknown_price_is_said_and_not_guessed(tmp_path: Path, rehearsal: Rehearsal) -> None:
    step = read_step("openai", model="some-model-of-ours")
    archive = make(tmp_path, rehearsal, "openai", step, pages=3)
    with archive.engine() as engine:
        made = sheet(engine)
    assert made.usd is None
    assert made.unpriced == ["read"]
    assert any("prices" in each for each in made.lines[0].words)


def test_few_pages_go_by_plain_calls_and_are_priced_so(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = cloud(
        tmp_path, rehearsal, "openai", 20, batch_size=8, place={"batch_from": 5, "max_requests": 4}
    )
    with archive.engine() as engine:
        line = line_of(engine)
    assert line.batch is not None
    assert line.plain is not None
    assert line.usd is not None
    assert line.usd.mid == line.batch.mid / 20 * 16 + line.plain.mid / 20 * 4
    assert line.tasks == 2 + 2 + 1


def test_copies_cost_nothing(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = cloud(tmp_path, rehearsal, "openai", 4)
    for name in ("copy1.png", "copy2.png"):
        (archive.pages / "a" / name).write_bytes((archive.pages / "a" / "0000.png").read_bytes())
    with archive.engine() as engine:
        find_pages(engine)
        line = line_of(engine)
    assert (line.pages, line.reused) == (4, 2)


def test_pages_that_cannot_be_read_are_said_in_words(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = cloud(tmp_path, rehearsal, "anthropic", 3, steps=[read_step("anthropic", image={})])
    (archive.pages / "a" / "0000.png").unlink()
    with archive.engine() as engine:
        line = line_of(engine)
        assert line.sampled == 2
        assert line.usd is not None
        assert any("1 of the sampled pages" in each for each in line.words)
    for page in (archive.pages / "a").iterdir():
        page.unlink()
    with archive.engine() as engine:
        made = sheet(engine)
    assert (made.usd, made.unpriced) == (None, ["read"])
    assert any("is not known yet" in each for each in made.lines[0].words)
