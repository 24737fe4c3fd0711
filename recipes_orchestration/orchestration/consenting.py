"""A person's yes to one run, and why a step is not started without one."""

from __future__ import annotations

from typing import Any

import dagster as dg

from ..engine.consent import RUN_TAG, missing_consent
from ..project import Project
from ..recipe import LOCAL, Recipe, Step
from ..stages import Stage
from .run_tags import says_yes

__all__ = ["about_consent", "config_of", "may_leave"]

YES = "pages_may_leave"
"""In the run config of a stage elsewhere."""


def config_of(stage: Stage) -> dict[str, Any] | None:
    """What the launchpad asks about a stage; None for work on this machine."""
    if stage.place == LOCAL:
        return None
    words = f"For this run: may its pages go to {stage.place}? The project must say yes as well."
    return {YES: dg.Field(bool, default_value=False, description=words)}


def may_leave(context: dg.AssetExecutionContext) -> bool:
    """Whether a person said so for the run; the run that goes on from it is told by its tag."""
    config = context.op_execution_context.op_config or {}
    if config.get(YES):
        context.instance.add_run_tags(context.run.run_id, {RUN_TAG: "yes"})
        return True
    return says_yes(context.run.tags)


def about_consent(project: Project, recipe: Recipe, step: Step, about: str) -> str:
    """A step's description, with what is missing before Dagster starts it by itself."""
    missing = missing_consent(project, recipe, step.place)
    return about if missing is None else f"{about}\n\n{missing}"
