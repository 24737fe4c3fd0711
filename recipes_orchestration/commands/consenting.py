"""What commands say when pages may not leave for the place of a step."""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.consent import missing_consent
from ..errors import NoConsent
from ..project import Project
from ..recipe import Recipe
from .output import Output

__all__ = ["refuse_without_consent", "tell_missing_consent"]


def tell_missing_consent(
    output: Output, project: Project, recipe: Recipe, steps: Iterable[str], *, request: bool
) -> None:
    """Says before any work is done which of the steps will not be."""
    for words in _missing(project, recipe, steps, request):
        output.note(words)


def refuse_without_consent(
    project: Project, recipe: Recipe, steps: Iterable[str], *, request: bool
) -> None:
    """Raises `NoConsent` when a step's pages may not leave."""
    for words in _missing(project, recipe, steps, request):
        raise NoConsent(f"{words} Steps that run here can be chosen with --step.")


def _missing(
    project: Project, recipe: Recipe, steps: Iterable[str], request: bool
) -> dict[str, None]:
    """The words of each place once, in the order of the steps."""
    found = (
        missing_consent(project, recipe, recipe.step(name).place, request=request) for name in steps
    )
    return dict.fromkeys(words for words in found if words is not None)
