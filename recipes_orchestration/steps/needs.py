"""What a step reads out of the values of the steps it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import StepError
from .step import Context

__all__ = ["field_of_need", "text_of_needs"]


def field_of_need(context: Context, field: str, kind: type, hint: str) -> Mapping[str, Any]:
    """The value of the first needed step that has the field, of that kind.

    Raises `StepError` with what to write into the recipe (`hint`) when no need has it.
    """
    for value in context.needs.values():
        if isinstance(value, Mapping) and isinstance(value.get(field), kind):
            return value
    has = ", ".join(context.needs) or "nothing"
    raise StepError(
        f"The step '{context.step}' needs a step whose result has '{field}', but it needs {has}; "
        f"write for example needs: [{hint}]."
    )


def text_of_needs(context: Context) -> str:
    """The text of the first needed step that has one; `StepError` when none has."""
    return field_of_need(context, "text", str, "read")["text"]
