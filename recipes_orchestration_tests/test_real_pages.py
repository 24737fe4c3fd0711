"""The recipe lines, read, names, embed over real pages of every collection, to its end."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.engine.look import PageState
from recipes_orchestration.engine.status import iter_views
from recipes_orchestration.project import load_project
from recipes_orchestration.stages import stages_of

from .archive import find_pages

REAL = Path(
    os.environ.get("RECIPES_REAL_PAGES")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "pages"
)
SUFFIXES = (".jpg", ".png", ".tif", ".pdf")
STEPS = ["lines", "read", "names", "embed"]
PAGES_OF_EACH = 2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not REAL.is_dir(),
        reason=f"there are no real pages at {REAL}; RECIPES_REAL_PAGES names their folder",
    ),
]

PROJECT = "name: real\nsources:\n  letters: {root: pages}\nplaces:\n  local: {workers: 2}\n"
RECIPE = """\
recipe: letters
source: letters
max_held: 0.05
steps:
  - {name: lines, run: lines, place: local}
  - {name: read, run: read, needs: [lines]}
  - {name: names, run: names, needs: [read]}
  - {name: embed, run: embed, needs: [read]}
"""


@dataclass(frozen=True)
class Ran:
    """`states` counts the pages by step and state, `values` are by step and page id."""

    pages: list[str]
    states: Counter[tuple[str, PageState]]
    held: list[str]
    values: dict[tuple[str, str], Any]
    true_letters: dict[str, int]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    for extra in ("rapidocr", "spacy", "wordllama"):
        pytest.importorskip(extra, reason="needs the extras ocr and nlp")
    folder = tmp_path_factory.mktemp("real")
    (folder / "recipes").mkdir()
    (folder / "project.yaml").write_text(PROJECT)
    (folder / "recipes" / "letters.yaml").write_text(RECIPE)
    true_letters = copy_pages(folder / "pages")
    states: Counter[tuple[str, PageState]] = Counter()
    held: list[str] = []
    values: dict[tuple[str, str], Any] = {}
    pages: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RECIPES_PROJECT", "RECIPES_LEDGER_URL"):
            patch.delenv(name, raising=False)
        patch.setattr(sys, "path", list(sys.path))
        with open_engine(load_project(folder)) as engine:
            find_pages(engine)
            recipe = engine.project.recipe("letters")
            for batch in engine.ledger.pages.batches("letters"):
                for stage in stages_of(recipe):
                    run_stage(engine, stage, batch.key)
            for batch, view in iter_views(engine, recipe):
                pages += view.pages
                for name, step in view.steps.items():
                    states.update((name, state) for state in step.states.values())
                    held += [f"{each.page_id}: {each.words}" for each in step.held]
                    pairs = list(step.keys.items())
                    found = engine.library.values("letters", name, batch.key, pairs)
                    values.update({(name, page): value for (page, _), value in found.items()})
    return Ran(pages, states, held, values, true_letters)


def copy_pages(root: Path) -> dict[str, int]:
    """A few pages of each collection, with the letters of their true text by file."""
    letters: dict[str, int] = {}
    for collection in sorted(path for path in REAL.iterdir() if path.is_dir()):
        pictures = [
            path
            for path in sorted(collection.rglob("*"))
            if path.suffix in SUFFIXES and true_text(path).is_file()
        ]
        # From the middle, as collections begin with title pages.
        middle = max(0, len(pictures) // 2 - 1)
        for picture in pictures[middle : middle + PAGES_OF_EACH]:
            file = picture.relative_to(REAL)
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, root / file)
            letters[file.as_posix()] = len(true_text(picture).read_text("utf-8"))
    return letters


def true_text(picture: Path) -> Path:
    return picture.with_name(picture.name.removesuffix(picture.suffix) + ".gt.txt")


def test_pages_of_every_collection_are_found(ran: Ran):
    collections = {path.name for path in REAL.iterdir() if path.is_dir()}
    assert {page.split("/")[0] for page in ran.pages} == collections
    assert {page.partition("#")[0] for page in ran.pages} == set(ran.true_letters)


def test_every_page_lands_at_every_step(ran: Ran):
    assert ran.held == []
    assert ran.states == {(step, PageState.LANDED): len(ran.pages) for step in STEPS}
    assert len(ran.values) == len(STEPS) * len(ran.pages)


def test_what_landed_has_the_shape_that_each_step_promises(ran: Ran):
    for page in ran.pages:
        lines, read = ran.values["lines", page], ran.values["read", page]
        assert (lines["width"], lines["height"]) == (read["width"], read["height"])
        assert len(lines["lines"]) > 0, page
        # Handwriting is read badly, but never as nothing or as far more than there is.
        true = ran.true_letters[page.partition("#")[0]]
        assert true / 4 < len(read["text"]) < true * 4, (page, true)
        for name in ran.values["names", page]["names"]:
            # A name may go over the end of a line, which is a blank in it.
            there = read["text"][name["start"] : name["end"]]
            assert " ".join(there.split()) == name["text"], page
        vector = ran.values["embed", page]["vector"]
        assert any(vector), page
