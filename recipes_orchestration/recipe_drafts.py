"""Recipes as far as their files can be read, so that one mistake does not hide the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .errors import ConfigError, StepError
from .place_settings import CLOUD_PLACES
from .project_mistakes import keys_of
from .recipe_files import LONGEST_RUN, MODEL_KEYS, StepFile
from .steps.registry import load_operation
from .steps.step import Operation
from .yaml_files import YamlFile

__all__ = ["Draft", "DraftStep", "draft_of", "gives_of", "in_order", "operation_of"]

T = TypeVar("T")


@dataclass(frozen=True)
class DraftStep:
    """A step as far as its file can be read: `index` is its place in the list.

    `keys` are those of its keys that say what a model is asked, as they stand in the file.
    """

    index: int
    name: str
    run: str | None
    place: str
    needs: tuple[str, ...] = ()
    needs_known: bool = True
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keys: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def on_model(self) -> bool:
        """Whether it is at a provider's place."""
        return self.place in CLOUD_PLACES


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


def draft_of(file: YamlFile) -> Draft:
    """What can be read of a recipe file, leaving out what has the wrong type."""
    steps: list[DraftStep] = []
    listed = file.value.get("steps")
    for index, value in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            continue
        needs, params = value.get("needs", []), value.get("params")
        run = _text(value.get("run"))
        listed_needs: list[Any] = needs if isinstance(needs, list) else []
        steps.append(
            DraftStep(
                index,
                value["name"],
                run if run is not None and len(run) <= LONGEST_RUN else None,
                _text(value.get("place", "local")) or "local",
                tuple(need for need in listed_needs if isinstance(need, str)),
                # An unknown key may be a slip for `needs`, which then is no second mistake.
                listed_needs == needs and value.keys() <= set(keys_of(StepFile)),
                params if isinstance(params, dict) else {},
                {key: value[key] for key in MODEL_KEYS if key in value},
            )
        )
    name = _text(file.value.get("recipe")) or ""
    return Draft(file, name, _text(file.value.get("source")), tuple(steps))


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
