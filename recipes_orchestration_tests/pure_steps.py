"""Steps whose value follows from the page and what they need, and from nothing else."""

from __future__ import annotations

from typing import Any

from recipes_orchestration.pages.page import Page
from recipes_orchestration.recipe import canonical_json, digest
from recipes_orchestration.steps.step import Context


def mix(page: Page, context: Context) -> dict[str, Any]:
    """A digest of all that the step is given; the pages that `fails_on` lists fail."""
    if page.page_id in context.params.get("fails_on", ()):
        raise ValueError(f"{context.step} cannot read {page.page_id}")
    given = [page.page_id, context.step, dict(context.params), dict(context.needs)]
    return {"text": digest(canonical_json(given))}
