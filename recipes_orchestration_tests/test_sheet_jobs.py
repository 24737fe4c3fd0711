"""The sheet of steps that run as jobs on a cluster or on Hugging Face; neither is there."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.engine.sheet import SheetLine, sheet_of
from recipes_orchestration.engine.sheet_words import markdown
from recipes_orchestration.places.hf_jobs import prices as hf_prices
from recipes_orchestration.stages import stages_of

from .archive import Archive, find_pages, make_archive

pytestmark = pytest.mark.usefixtures("restored_path")

HF = {"namespace": "archive", "bucket": "archive/recipes", "flavor": "t4-small"}


def place(archive: Archive, name: str, **settings: Any) -> None:
    """The project with that place, and the recipe's steps there."""
    project = {
        "name": "test",
        "sources": {"letters": {"root": "pages", "batch_size": 5}},
        "places": {"local": {"workers": 1}, **({} if name == "local" else {name: settings})},
    }
    (archive.folder / "project.yaml").write_text(json.dumps(project))
    steps = [{"name": "size", "run": "counting_steps:size", "place": name}]
    recipe = {"recipe": "measure", "source": "letters", "steps": steps}
    (archive.folder / "recipes" / "measure.yaml").write_text(json.dumps(recipe))


def line_of(archive: Archive) -> SheetLine:
    with open_engine(archive.project()) as engine:
        sheet = sheet_of(engine, engine.project.recipe("measure"))
        assert engine.places == {}
    assert "size" in markdown(sheet)
    (line,) = sheet.lines
    return line


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = make_archive(tmp_path / "project", [f"a/{n}.png" for n in range(15)], batch_size=5)
    place(archive, "local")
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    return archive


@pytest.fixture
def begun(archive: Archive) -> Archive:
    """A third of it has landed, from this machine, so that its seconds are known."""
    with open_engine(archive.project()) as engine:
        (stage,) = stages_of(engine.project.recipe("measure"))
        run_stage(engine, stage, "a/0001")
    return archive


def test_a_cluster_gets_so_many_elements_and_costs_no_money(archive: Archive) -> None:
    place(archive, "slurm", pages_per_task=2)
    line = line_of(archive)
    assert (line.pages, line.batches, line.tasks) == (15, 3, 9)
    assert (line.usd, line.seconds, line.elsewhere) == (None, None, True)


def test_what_landed_here_says_how_long_a_cluster_takes(begun: Archive) -> None:
    place(begun, "slurm", pages_per_task=2, parallel=3)
    line = line_of(begun)
    assert line.local_seconds is not None
    assert line.seconds == pytest.approx(line.local_seconds / 3)


def test_jobs_of_hugging_face_are_priced_by_the_minutes_of_their_machine(begun: Archive) -> None:
    place(begun, "hf_jobs", **HF)
    line = line_of(begun)
    minute = hf_prices.price_of("t4-small", None).usd
    assert line.tasks == 2
    assert line.usd is not None
    assert line.usd.low == minute  # a minute that was begun counts whole
    assert line.usd.low < line.usd.mid < line.usd.high


def test_a_price_that_is_not_known_is_said(archive: Archive) -> None:
    place(archive, "hf_jobs", **HF)
    line = line_of(archive)
    assert line.usd is None
    assert any("the price is known when" in each for each in line.words)
    assert Decimal(0) < hf_prices.price_of("t4-small", None).usd
