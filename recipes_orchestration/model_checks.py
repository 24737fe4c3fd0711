"""What must hold of the keys that say what a model is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from .picture_checks import check_seen
from .place_settings import CLOUD_PLACES
from .project_mistakes import choose
from .prompt_files import named_file, read_named, read_schema
from .recipe_drafts import Draft, DraftStep, gives_of
from .recipe_files import MODEL_KEYS
from .steps.registry import BUILT_IN, ON_MODELS
from .steps.template import PAGE_ID, TEXT, Slot, TemplateError, parse_template
from .yaml_files import ConfigErrors, Mistake, quoted, shown_path

__all__ = ["NO_EMBEDDINGS", "check_model_keys"]

NO_EMBEDDINGS = frozenset({"anthropic"})
"""Providers without embedding models."""

_TAKES = {
    "prompt": ("model", "prompt", "image", "max_tokens", "schema", "temperature"),
    "read": ("model", "prompt", "image", "max_tokens", "temperature"),
    "names": ("model", "prompt", "max_tokens", "temperature"),
    "embed": ("model", "dimensions"),
}


def check_model_keys(draft: Draft, step: DraftStep) -> list[Mistake]:
    """What is wrong with a step's place, prompt and other keys about a model.

    Values of the wrong type are left to the file's own model. The place is one that is known.
    """
    if not step.on_model:
        return _elsewhere(draft, step)
    mistakes = _files(draft, step)
    if step.run in ON_MODELS:
        mistakes += _declared(draft, step)
    else:
        mistakes += [
            _mistake(draft, step, f"params: found {key} both here and as a key; keep one", "params")
            for key in MODEL_KEYS
            if key in step.keys and key in step.params
        ]
    return mistakes


def _mistake(draft: Draft, step: DraftStep, what: str, *at: str, key: bool = False) -> Mistake:
    message = f"step {quoted(step.name)}: {what}"
    return draft.file.mistake(("steps", step.index, *at), message, key=key)


def _elsewhere(draft: Draft, step: DraftStep) -> list[Mistake]:
    """Keys about a model at a place that has none."""
    places = ", ".join(sorted(CLOUD_PLACES))
    if step.run in ON_MODELS and step.run not in BUILT_IN:
        found = f'place: found {quoted(step.place)}, but "{step.run}" asks a model'
        return [_mistake(draft, step, f"{found}; allowed: {places}", "place")]
    return check_seen(draft, step) + [
        _mistake(
            draft,
            step,
            f'found the key "{key}", but the place {quoted(step.place)} asks no model; take it '
            f"away, or write a place that does: {places}",
            key,
            key=True,
        )
        for key in MODEL_KEYS
        if key in step.keys and key != "image"
    ]


def _declared(draft: Draft, step: DraftStep) -> list[Mistake]:
    run = step.run or ""
    takes = _TAKES[run]
    mistakes: list[Mistake] = []
    if run == "embed" and step.place in NO_EMBEDDINGS:
        allowed = ", ".join(sorted(set(CLOUD_PLACES) - NO_EMBEDDINGS))
        what = f"place: found {quoted(step.place)}, which has no embeddings; allowed: {allowed}"
        mistakes.append(_mistake(draft, step, what, "place"))
    if "model" not in step.keys:
        what = f'the key "model" is missing; add the model that {step.place} is to ask'
        mistakes.append(_mistake(draft, step, what))
    if run == "prompt" and "prompt" not in step.keys:
        what = 'the key "prompt" is missing; add a file such as prompts/read.md'
        mistakes.append(_mistake(draft, step, what))
    for key in step.keys:
        if key not in takes:
            what = f'found the key "{key}", which {run} does not take; allowed: {", ".join(takes)}'
            mistakes.append(_mistake(draft, step, what, key, key=True))
    if run == "read" and step.keys.get("image") in (False, "none"):
        what = "image: found none, but read reads the picture; take it away, or run: prompt"
        mistakes.append(_mistake(draft, step, what, "image"))
    if step.params:
        found = f"params: found {quoted(', '.join(step.params))}, but {run} has none at this place"
        what = f"{found}; allowed beside run: {', '.join(takes)}"
        mistakes.append(_mistake(draft, step, what, "params"))
    return mistakes


def _files(draft: Draft, step: DraftStep) -> list[Mistake]:
    """Prompt and schema as files, and the prompt as a template where it is one."""
    file, where = draft.file, ("steps", step.index)
    mistakes: list[Mistake] = []
    schema: Any = step.keys.get("schema")
    if isinstance(schema, dict) or (isinstance(schema, str) and schema):
        try:
            read_schema(file, (*where, "schema"), schema)
        except ConfigErrors as error:
            mistakes += error.mistakes
    prompt = step.keys.get("prompt")
    if isinstance(prompt, str) and 0 < len(prompt) <= 500:
        try:
            text = read_named(file, (*where, "prompt"), prompt)
        except ConfigErrors as error:
            return [*mistakes, *error.mistakes]
        if step.run in ON_MODELS:
            shown = shown_path(named_file(file, prompt))
            mistakes += _template(draft, step, shown, text)
    return mistakes


def _template(draft: Draft, step: DraftStep, shown: str, text: str) -> list[Mistake]:
    try:
        slots = [part for part in parse_template(text) if isinstance(part, Slot)]
    except TemplateError as error:
        return [Mistake(shown, error.line, str(error))]
    needs = [other for other in draft.steps if other.name in step.needs]
    wrong = ((slot, _slot(step, slot, needs)) for slot in slots)
    return [
        Mistake(shown, slot.line, f"found {slot}{what} (step {quoted(step.name)})")
        for slot, what in wrong
        if what is not None
    ]


def _slot(step: DraftStep, slot: Slot, needs: Iterable[DraftStep]) -> str | None:
    """What is wrong with a slot, as far as what the needed steps give is known."""
    if slot.name in step.needs:
        gives = next((gives_of(need) for need in needs if need.name == slot.name), ())
        if slot.field is None or not gives or slot.field in gives:
            return None
        return f", but the step {quoted(slot.name)} has no such field{choose(slot.field, gives)}"
    if slot.field is None and slot.name == PAGE_ID:
        return None
    if slot.field is None and slot.name == TEXT:
        if not step.needs_known or any(_may_have_text(gives_of(need)) for need in needs):
            return None
        return ", but no needed step has a text; add one that has to needs"
    if not step.needs_known:
        return None
    return choose(slot.name, [TEXT, PAGE_ID, *step.needs])


def _may_have_text(gives: Collection[str]) -> bool:
    return not gives or TEXT in gives
