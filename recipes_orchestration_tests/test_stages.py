"""Steps become stages: fused where they may be, never waiting for one another in a circle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.recipe import Recipe, Step
from recipes_orchestration.runner.run_pages import Setting, run_pages
from recipes_orchestration.runner.work import Outcome, PageWork
from recipes_orchestration.stages import Stage, stages_of

from .archive import find_pages, make_archive

JOBS = ("cluster", "hub")
PROVIDERS = ("anthropic", "openai")
PLACES = ("local", *JOBS, *PROVIDERS)
PAGES = ("a/1.png", "a/2.png", "a/3.png")
MIX = "recipes_orchestration_tests.pure_steps:mix"


@st.composite
def recipes(draw: st.DrawFn, places: tuple[str, ...] = PLACES) -> Recipe:
    """Any acyclic recipe of up to ten steps at any places, in an order that respects the needs."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 10))):
        names = [step.name for step in steps]
        needs = draw(st.lists(st.sampled_from(names), unique=True, max_size=4)) if names else []
        place = draw(st.sampled_from(places))
        steps.append(
            Step(
                f"s{number}",
                MIX,
                "1",
                place=place,
                needs=tuple(needs),
                params={"fails_on": draw(st.sets(st.sampled_from(PAGES), max_size=1).map(sorted))},
                provider=place if place in PROVIDERS else None,
            )
        )
    return Recipe(name="any", source="letters", steps=tuple(steps))


def homes(recipe: Recipe) -> dict[str, int]:
    """The number of each step's stage."""
    return {
        step.name: number for number, stage in enumerate(stages_of(recipe)) for step in stage.steps
    }


@given(recipes())
def test_every_step_is_in_one_stage_of_its_place(recipe: Recipe) -> None:
    inside = [(step.name, stage.place) for stage in stages_of(recipe) for step in stage.steps]
    assert sorted(inside) == sorted((step.name, step.place) for step in recipe.steps)


@given(recipes())
def test_stages_never_wait_for_one_another_in_a_circle(recipe: Recipe) -> None:
    home = homes(recipe)
    waits: dict[int, set[int]] = defaultdict(set)
    for step in recipe.steps:
        waits[home[step.name]] |= {home[need] for need in step.needs} - {home[step.name]}
    order = list(TopologicalSorter(waits).static_order())  # raises CycleError
    assert sorted(order) == sorted(set(home.values()))


@given(recipes())
def test_what_a_step_needs_is_before_it_in_its_stage_or_in_an_earlier_one(recipe: Recipe) -> None:
    home = homes(recipe)
    for stage in stages_of(recipe):
        inside = [step.name for step in stage.steps]
        for step in stage.steps:
            for need in step.needs:
                if need in inside:
                    assert inside.index(need) < inside.index(step.name)
                else:
                    assert home[need] < home[step.name]


@given(recipes())
def test_a_step_at_a_provider_is_alone(recipe: Recipe) -> None:
    for stage in stages_of(recipe):
        assert len(stage.steps) == 1 or all(step.provider is None for step in stage.steps)


@given(recipes())
def test_no_two_stages_in_a_row_could_be_one(recipe: Recipe) -> None:
    stages = stages_of(recipe)
    for one, other in pairwise(stages):
        assert one.place != other.place or one.place in PROVIDERS


@given(recipes())
def test_a_step_behind_one_stage_of_its_place_is_in_it(recipe: Recipe) -> None:
    home = homes(recipe)
    places = {step.name: step.place for step in recipe.steps}
    for step in recipe.steps:
        behind = {home[need] for need in step.needs}
        if len(behind) == 1 and step.provider is None and places[step.needs[0]] == step.place:
            assert {home[step.name]} == behind


@given(recipes())
def test_stages_are_the_same_each_time_and_have_names_of_their_own(recipe: Recipe) -> None:
    stages = stages_of(recipe)
    assert stages == stages_of(replace(recipe))
    assert len({stage.name for stage in stages}) == len(stages)


def test_lines_and_reading_there_and_names_and_vectors_here() -> None:
    recipe = Recipe(
        "letters",
        "letters",
        (
            Step("lines", "lines", "1", place="cluster"),
            Step("read", "read", "1", place="cluster", needs=("lines",)),
            Step("names", "names", "1", needs=("read",)),
            Step("embed", "embed", "1", needs=("read",)),
        ),
    )
    assert [(stage.place, stage.name) for stage in stages_of(recipe)] == [
        ("cluster", "lines_to_read"),
        ("local", "names_to_embed"),
    ]


def run(recipe: Recipe, steps: tuple[Step, ...], landed: dict[str, dict[str, Any]]) -> None:
    """Runs these steps on every page as one task, and lands their values."""
    names = {step.name for step in steps}
    needed = {need for step in steps for need in step.needs} - names
    setting = Setting(steps, SourceReader("memory://none"), ".", 1)
    works = [
        PageWork(
            page_id=page,
            sha256="0" * 64,
            file=page,
            frame=None,
            steps=tuple(step.name for step in steps),
            needs={need: landed[page][need] for need in needed if need in landed[page]},
        )
        for page in PAGES
    ]
    outcomes: list[Outcome] = run_pages(setting, works)
    for outcome in outcomes:
        assert outcome.step in names
        if outcome.failure is None:
            landed[outcome.page_id][outcome.step] = outcome.value


@given(recipes())
@settings(deadline=None)
def test_results_are_the_same_fused_or_not(recipe: Recipe) -> None:
    fused: dict[str, dict[str, Any]] = {page: {} for page in PAGES}
    single: dict[str, dict[str, Any]] = {page: {} for page in PAGES}
    for stage in stages_of(recipe):
        run(recipe, stage.steps, fused)
    for step in recipe.steps:
        run(recipe, (step,), single)
    assert fused == single


@given(recipes())
@settings(deadline=None)
def test_results_are_the_same_wherever_the_steps_are_placed(recipe: Recipe) -> None:
    here = replace(
        recipe, steps=tuple(replace(step, place="local", provider=None) for step in recipe.steps)
    )
    placed: dict[str, dict[str, Any]] = {page: {} for page in PAGES}
    local: dict[str, dict[str, Any]] = {page: {} for page in PAGES}
    for stage in stages_of(recipe):
        run(recipe, stage.steps, placed)
    for stage in stages_of(here):
        run(here, stage.steps, local)
    assert placed == local


@pytest.mark.usefixtures("restored_path")
def test_the_engine_lands_the_same_fused_or_not(tmp_path: Path) -> None:
    steps = (
        Step("a", MIX, "1"),
        Step("b", MIX, "1", needs=("a",)),
        Step("c", MIX, "1", needs=("a",), params={"fails_on": ["a/2.png"]}),
        Step("d", MIX, "1", needs=("b", "c")),
    )
    found: list[list[tuple[str, str, str, str]]] = []
    for fused in (True, False):
        archive = make_archive(tmp_path / f"fused_{fused}", PAGES)
        with open_engine(archive.project()) as engine:
            find_pages(engine)
            recipe = Recipe("mixed", "letters", steps)
            alone = tuple(Stage(recipe, "local", (step,)) for step in steps)
            for stage in stages_of(recipe) if fused else alone:
                run_stage(engine, stage, "a/0001")
            held = {
                name: len(step.held) for name, step in look(engine, recipe, "a/0001").steps.items()
            }
            assert held == {"a": 0, "b": 0, "c": 1, "d": 1}
            found.append(
                sorted(
                    (step.name, row["page_id"], row["key"], row["value"])
                    for step in steps
                    for row in engine.library.table("mixed", step.name, "a/0001").to_pylist()
                )
            )
    assert found[0] == found[1]
    assert len(found[0]) == 3 + 3 + 2 + 2
