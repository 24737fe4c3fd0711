"""From a step as it stands in a recipe's file to the step with all that is part of its key."""

from __future__ import annotations

from typing import Any

from .prompt_files import read_named, read_schema
from .recipe import Step
from .recipe_drafts import DraftStep
from .recipe_files import StepFile
from .steps.registry import load_operation
from .yaml_files import YamlFile

__all__ = ["step_of"]


def step_of(step: StepFile, file: YamlFile, draft: DraftStep) -> Step:
    """The step of a recipe's file, with the text of its prompt and the place that it has.

    What bounds the answer, the picture and the schema's content become params, so that they are
    part of the key; a step that asks no model has the same params as it is written with, and its
    picture beside them. Raises `ConfigErrors` when a file that it names cannot be read.
    """
    on_model, index = draft.on_model, draft.index
    prompt = step.prompt
    if prompt is not None:
        prompt = read_named(file, ("steps", index, "prompt"), prompt)
    return Step(
        name=step.name,
        run=step.run,
        version=load_operation(step.run, on_model).version,
        place=draft.place,
        needs=step.needs,
        params={**step.params, **_settings(step, file, index, on_model)},
        provider=draft.kind if on_model else None,
        model=step.model,
        prompt=prompt,
        # Written out with its defaults, on which the result depends.
        image=None if on_model or step.image is None else step.image.model_dump(),
    )


def _settings(step: StepFile, file: YamlFile, index: int, on_model: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if on_model and "image" in step.model_fields_set:
        # None was written as `none`; what is not written is left to the operation.
        settings["image"] = (
            False if step.image is None else step.image.model_dump(exclude_unset=True)
        )
    if step.schema_ is not None:
        settings["schema"] = read_schema(file, ("steps", index, "schema"), step.schema_)
    for name in ("max_tokens", "temperature", "dimensions"):
        if (value := getattr(step, name)) is not None:
            settings[name] = value
    return settings
