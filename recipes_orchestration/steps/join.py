"""`join`: the values of several steps in one."""

from __future__ import annotations

from typing import Any

from ..errors import StepError
from ..pages.page import Page
from .params import NoParams, checker
from .step import Context, step

__all__ = ["join"]


@step(kinds=("python",), check=checker("join", NoParams))
def join(page: Page, context: Context) -> dict[str, Any]:  # noqa: ARG001
    """Puts the results of the steps it needs into one: `{step name: its value}`."""
    if not context.needs:
        raise StepError(
            f"The step '{context.step}' joins nothing; name the steps to join in its needs."
        )
    return dict(context.needs)
