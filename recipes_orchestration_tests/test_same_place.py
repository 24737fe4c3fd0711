"""`place: same` over random recipes: the place of the needed steps, or words that say why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.place_settings import CLOUD_PLACES
from recipes_orchestration.project_places import SAME
from recipes_orchestration.recipe import Recipe, Step
from recipes_orchestration.recipe_drafts import DraftStep, draft_of, in_order
from recipes_orchestration.stages import stages_of
from recipes_orchestration.yaml_files import YamlFile

KINDS = {"local": "local", "cluster": "slurm", "hub": "hf_jobs", "anthropic": "anthropic"}

Written = list[dict[str, Any]]


@st.composite
def written_steps(draw: st.DrawFn) -> Written:
    """Steps of any acyclic recipe as they stand in a file, many of them at the same place."""
    steps: Written = []
    for number in range(draw(st.integers(1, 8))):
        names = [step["name"] for step in steps]
        needs = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        place = draw(st.sampled_from([*KINDS, SAME, SAME]))
        steps.append({"name": f"s{number}", "run": "text", "place": place, "needs": needs})
    return steps


def drafted(steps: Written) -> dict[str, DraftStep]:
    file = YamlFile(Path("letters.yaml"), {"recipe": "letters", "steps": steps}, {})
    return {step.name: step for step in draft_of(file, KINDS).steps}


@given(written_steps())
def test_every_step_has_a_real_place_of_its_kind(steps: Written) -> None:
    for step in drafted(steps).values():
        assert step.kind == KINDS[step.place]


@given(written_steps())
def test_it_is_the_place_of_all_needed_steps_or_it_is_told_why_not(steps: Written) -> None:
    found = drafted(steps)
    for step in steps:
        places = {found[need].place for need in step["needs"]}
        has_one = len(places) == 1 and not places <= set(CLOUD_PLACES)
        if step["place"] != SAME:
            assert (found[step["name"]].place, found[step["name"]].misplaced) == (
                step["place"],
                None,
            )
        elif has_one:
            assert {found[step["name"]].place} == places
            assert found[step["name"]].misplaced is None
        else:
            assert found[step["name"]].misplaced is not None


@given(written_steps(), st.randoms(use_true_random=False))
def test_the_order_in_the_file_changes_no_place(steps: Written, random: Any) -> None:
    before = {name: step.place for name, step in drafted(steps).items()}
    random.shuffle(steps)
    assert {name: step.place for name, step in drafted(steps).items()} == before


@given(written_steps())
def test_a_step_at_the_same_place_as_one_stage_is_fused_into_it(steps: Written) -> None:
    found = drafted(steps)
    ordered = in_order(list(found.values()), lambda step: step.name, lambda step: step.needs)
    recipe = Recipe(
        "letters",
        "letters",
        tuple(
            Step(
                step.name,
                "text",
                "1",
                place=step.place,
                needs=step.needs,
                provider=step.kind if step.on_model else None,
            )
            for step in ordered
        ),
    )
    home = {step.name: stage for stage in stages_of(recipe) for step in stage.steps}
    for step in steps:
        behind = {home[need].name for need in step["needs"]}
        same = step["place"] == SAME and found[step["name"]].misplaced is None
        if same and len(behind) == 1:
            assert behind == {home[step["name"]].name}
