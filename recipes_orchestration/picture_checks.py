"""What must hold of the key `image` of a step that asks no model: the picture that it sees."""

from __future__ import annotations

from typing import Any

from .recipe_drafts import Draft, DraftStep, operation_of
from .steps.picture import DEFAULT_SIDE, PictureSettings
from .steps.registry import BUILT_IN
from .yaml_files import Mistake, quoted

__all__ = ["check_seen"]

_LOOKING = frozenset({"lines", "read"})
"""The built-in operations that look at the picture."""

_KEYS = ", ".join(PictureSettings.model_fields)


def check_seen(draft: Draft, step: DraftStep) -> list[Mistake]:
    """What is wrong with `image` of a step at no provider.

    `read` cuts lines out of the picture on which they were found, so both steps must see it in
    the same size.
    """
    mistakes: list[Mistake] = []
    given = step.keys.get("image")
    if "image" in step.keys and step.run in BUILT_IN and step.run not in _LOOKING:
        what = f'found the key "image", but {step.run} does not look at the picture; take it away'
        return [_mistake(draft, step, what, key=True)]
    if given in (False, "none"):
        what = f"image: found none, but the step is sent nothing; take it away, or write {_KEYS}"
        return [_mistake(draft, step, what)]
    if step.run == "read":
        mistakes += [
            _mistake(draft, step, what, key="image" not in step.keys)
            for other in draft.steps
            if (what := _other_size(step, other)) is not None
        ]
    return mistakes


def _other_size(step: DraftStep, other: DraftStep) -> str | None:
    """That `read` sees the picture in another size than the step that finds its lines."""
    if other.name not in step.needs or other.on_model:
        return None
    operation = operation_of(other)
    if operation is None or "lines" not in operation.gives:
        return None
    own, found_on = _side(step.keys), _side(other.keys)
    if own == found_on or _unreadable(step.keys) or _unreadable(other.keys):
        return None
    lines_on = f"{quoted(other.name)} finds the lines on {_shown(found_on)}"
    return f"image: found {_shown(own)}, but {lines_on}; write the same max_side for both"


def _side(keys: Any) -> Any:
    image = keys.get("image")
    return image.get("max_side", DEFAULT_SIDE) if isinstance(image, dict) else None


def _unreadable(keys: Any) -> bool:
    """Whether it is a mistake of its own already."""
    return "image" in keys and not isinstance(keys["image"], dict)


def _shown(side: Any) -> str:
    return "the page as it is" if side is None else f"a picture of max_side {side}"


def _mistake(draft: Draft, step: DraftStep, what: str, *, key: bool = False) -> Mistake:
    message = f"step {quoted(step.name)}: {what}"
    at = ("image",) if "image" in step.keys else ()
    return draft.file.mistake(("steps", step.index, *at), message, key=key and bool(at))
