"""A step of the example's own, which runs on this machine behind the provider's."""

from __future__ import annotations

from typing import Any

from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.step import Context


def count_words(page: Page, context: Context) -> dict[str, Any]:
    """How many words the page has."""
    return {"words": len(context.needs["read"]["text"].split())}
