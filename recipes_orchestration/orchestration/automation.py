"""`when` of a recipe as an automation condition, and the sensor that acts on them."""

from __future__ import annotations

from typing import Any

import dagster as dg

from ..engine.consent import missing_consent
from ..project import Project
from ..recipe import MANUAL, NEW_PAGES, Recipe, Step

__all__ = ["automation_sensor", "condition_of"]


def condition_of(
    project: Project, recipe: Recipe, step: Step
) -> dg.AutomationCondition[Any] | None:
    """When Dagster starts a step by itself; None for `manual`, and where pages may not leave.

    `new_pages`: as soon as discovery has found new or changed pages of a batch, or a step before
    has landed. A cron line: at that time, whatever is missing or behind. Neither asks for a
    partition that is in progress, or again for one that failed until something about it changes.
    """
    if recipe.when == MANUAL or missing_consent(project, recipe, step.place):
        return None
    if recipe.when == NEW_PAGES:
        return dg.AutomationCondition.eager().with_label(NEW_PAGES)
    behind = (
        dg.AutomationCondition.missing()
        | dg.AutomationCondition.any_deps_updated().since_last_handled()
    )
    return (
        dg.AutomationCondition.cron_tick_passed(recipe.when).since_last_handled()
        & behind
        & ~dg.AutomationCondition.any_deps_missing()
        & ~dg.AutomationCondition.in_progress()
    ).with_label(f"at {recipe.when}")


def automation_sensor() -> dg.AutomationConditionSensorDefinition:
    """Acts on the conditions: one run a batch, never a backfill, so that each can wait alone."""
    return dg.AutomationConditionSensorDefinition(
        name="recipes_automation",
        target=dg.AssetSelection.all(),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=30,
        emit_backfills=False,
        use_user_code_server=True,
    )
