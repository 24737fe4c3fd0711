"""Recipes as far as their files can be read, so that one mistake does not hide the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from .errors import ConfigError, StepError
from .place_settings import CLOUD_PLACES
from .project_mistakes import keys_of
from .project_places import SAME
from .recipe import LOCAL
from .recipe_files import LONGEST_RUN, MODEL_KEYS, StepFile
from .steps.registry import load_operation
from .steps.step import Operation
from .yaml_files import YamlFile, quoted

__all__ = ["Draft", "DraftStep", "draft_of", "gives_of", "in_order", "operation_of"]

T = TypeVar("T")


@dataclass(frozen=True)
class DraftStep:
    """A step as far as its file can be read: `index` is its place in the list.

    `place` is where it runs and `kind` of which kind that is; `misplaced` says why `place: same`
    says no place. `keys` are those of its keys that say what a model is asked, as they stand in
    the file.
    """

    index: int
    name: str
    run: str | None
    place: str
    kind: str
    needs: tuple[str, ...] = ()
    needs_known: bool = True
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keys: Mapping[str, Any] = field(default_factory=dict[str, Any])
    misplaced: str | None = None

    @property
    def on_model(self) -> bool:
        """Whether it is at a provider's place."""
        return self.kind in CLOUD_PLACES


@dataclass(frozen=True)
class Draft:
    """A recipe as far as its file can be read, so that one mistake does not hide the next."""

    file: YamlFile
    name: str
    source: str | None
    steps: tuple[DraftStep, ...]

    @property
    def names(self) -> list[str]:
        """The names of its steps."""
        return [step.name for step in self.steps]


def draft_of(file: YamlFile, kinds: Mapping[str, str]) -> Draft:
    """What can be read of a recipe file, leaving out what has the wrong type.

    `kinds` says of which kind each place is.
    """
    steps: list[DraftStep] = []
    listed = file.value.get("steps")
    for index, value in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            continue
        needs, params = value.get("needs", []), value.get("params")
        run = _text(value.get("run"))
        place = _text(value.get("place", LOCAL)) or LOCAL
        listed_needs: list[Any] = needs if isinstance(needs, list) else []
        steps.append(
            DraftStep(
                index,
                value["name"],
                run if run is not None and len(run) <= LONGEST_RUN else None,
                place,
                kinds.get(place, place),
                tuple(need for need in listed_needs if isinstance(need, str)),
                # An unknown key may be a slip for `needs`, which then is no second mistake.
                listed_needs == needs and value.keys() <= set(keys_of(StepFile)),
                params if isinstance(params, dict) else {},
                {key: value[key] for key in MODEL_KEYS if key in value},
            )
        )
    name = _text(file.value.get("recipe")) or ""
    return Draft(file, name, _text(file.value.get("source")), _placed(steps, kinds))


def _placed(steps: Sequence[DraftStep], kinds: Mapping[str, str]) -> tuple[DraftStep, ...]:
    """The steps with `place: same` resolved, from the first to those that need them."""
    found = {step.name: step for step in steps if step.place != SAME}
    waiting = [step for step in steps if step.place == SAME]
    names = {step.name for step in steps}
    for step in in_order(waiting, lambda step: step.name, _among(waiting)):
        needed = [found[need] for need in step.needs if need in found]
        places = {need.place: need for need in needed}
        place, why = LOCAL, None
        if not set(step.needs) <= names or not step.needs_known:
            pass  # a need that is not there is a mistake already
        elif len(places) == 1 and not needed[0].on_model:
            place = needed[0].place
        else:
            why = _not_the_same(needed, places)
        settled = replace(step, place=place, kind=kinds.get(place, place), misplaced=why)
        found[step.name] = settled
    local = {"place": LOCAL, "kind": LOCAL}  # in a circle of needs, which is a mistake already
    return tuple(
        step if step.place != SAME else found.get(step.name, replace(step, **local))
        for step in steps
    )


def _among(steps: Sequence[DraftStep]) -> Callable[[DraftStep], list[str]]:
    """What a step needs of these."""
    names = {step.name for step in steps}
    return lambda step: [need for need in step.needs if need in names]


def _not_the_same(needed: Sequence[DraftStep], places: Mapping[str, DraftStep]) -> str:
    if not needed:
        return ", but the step needs no other, whose place it could have"
    shown = " and ".join(f"{quoted(step.name)} at {place}" for place, step in places.items())
    if len(places) > 1:
        return f", but it needs steps at several places: {shown}"
    return f", but it needs {shown}, whose batches take questions only"


def operation_of(step: DraftStep) -> Operation | None:
    """The step's operation, or None when it cannot be loaded."""
    try:
        return load_operation(step.run, step.on_model) if step.run is not None else None
    except (StepError, ConfigError):
        return None


def gives_of(step: DraftStep) -> tuple[str, ...]:
    """The fields of the step's value; empty when they are not known."""
    if step.on_model and step.run == "prompt":
        return () if "schema" in step.keys else ("text",)
    operation = operation_of(step)
    return () if operation is None else operation.gives


def in_order(steps: Sequence[T], name: Any, needs: Any) -> list[T]:
    """Steps so that each comes after what it needs, otherwise as they stand in the file.

    Steps of a circle are left out.
    """
    ordered: list[T] = []
    done: set[str] = set()
    waiting = list(steps)
    while True:
        ready = next((step for step in waiting if done.issuperset(needs(step))), None)
        if ready is None:
            return ordered
        waiting.remove(ready)
        ordered.append(ready)
        done.add(name(ready))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
