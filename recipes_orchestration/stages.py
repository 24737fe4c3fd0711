"""Steps to stages: consecutive steps at the same place run together. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .recipe import Recipe, Step

__all__ = ["Stage", "stages_of"]


@dataclass(frozen=True)
class Stage:
    """Steps of one recipe that run together at one place: one Dagster multi-asset."""

    recipe: Recipe
    place: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """`<first step>` or `<first step>_to_<last step>`; unique within its recipe."""
        first, last = self.steps[0].name, self.steps[-1].name
        return first if first == last else f"{first}_to_{last}"


def stages_of(recipe: Recipe) -> tuple[Stage, ...]:
    """The recipe's stages, each after every stage it needs.

    A step joins the earliest stage of its place that comes after everything it needs, so no
    stage ever waits for one behind it, and a step that only needs early results is not held up
    by a slow place in between. A step on a provider's models is always a stage of its own: no
    request of a batch may depend on another's answer.
    """
    placed: dict[str, int] = {}
    stages: list[list[Step]] = []
    for step in recipe.steps:
        latest_need = max((placed[need] for need in step.needs), default=-1)
        home = next(
            (
                index
                for index in range(max(latest_need, 0), len(stages))
                if stages[index][0].place == step.place
            ),
            None,
        )
        if home is None or step.provider is not None:
            stages.append([])
            home = len(stages) - 1
        stages[home].append(step)
        placed[step.name] = home
    return tuple(Stage(recipe, steps[0].place, tuple(steps)) for steps in stages)
