"""Consent: whether pages may leave this machine. The one function that decides it."""

from __future__ import annotations

from ..project import Project
from ..recipe import LOCAL, Recipe

__all__ = ["RUN_TAG", "live_calls_may_go", "missing_consent"]

RUN_TAG = "recipes/pages_may_leave"
"""The tag by which a Dagster run or backfill carries the yes of the person who launched it."""


def missing_consent(
    project: Project, recipe: Recipe, place: str, *, request: bool = False
) -> str | None:
    """Why no page, nor anything read from one, may go to the place; None when all may.

    Two yeses are asked for: the project's own, and that of the recipe or of the `request`, which
    is what a person says to one run. Work on this machine needs neither.
    """
    if project.kind_of(place) == LOCAL:
        return None
    missing: list[str] = []
    if not project.pages_may_leave:
        missing.append("the project's own yes (`pages_may_leave: true` in project.yaml)")
    if not (recipe.pages_may_leave or request):
        missing.append(
            "the recipe's or the run's (`consent: pages_may_leave` in the recipe for scheduled "
            "work, --pages-may-leave for one run)"
        )
    if not missing:
        return None
    return (
        f"Pages of recipe {recipe.name} may not leave for {place}: {' and '.join(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} missing. Nothing was sent."
    )


def live_calls_may_go(project: Project) -> bool:
    """Whether landing may ask a provider once more about pages that were sent with both yeses."""
    return project.pages_may_leave
