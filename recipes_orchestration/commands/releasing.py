"""The work of `recipes release`: a held page set aside, or given a value by hand."""

from __future__ import annotations

import os
from pathlib import Path

from ..engine.by_hand import give_value, set_aside, value_from
from ..engine.engine import Engine
from ..errors import NotFound
from ..pages.naming import name_from_bytes, shown
from ..recipe import Recipe
from .controlling import person
from .opening import opened
from .output import Output

__all__ = ["release_page"]


def release_page(
    project: Path | None,
    page: str,
    recipe: str | None,
    step: str | None,
    *,
    value: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Releases the page at the step that holds it, and says so."""
    output = Output(as_json=as_json)
    page_id = name_from_bytes(os.fsencode(page))
    with opened(project) as engine:
        chosen = _recipe(engine, page_id, recipe)
        if value is None:
            words = set_aside(engine, chosen, page_id, step, reason, person())
        else:
            given = value_from(value)
            words = give_value(engine, chosen, page_id, step, given, reason, person())
    output.line(f"{words}. Now run: recipes run {chosen.name}")
    output.document({"recipe": chosen.name, "page_id": page_id, "words": words})


def _recipe(engine: Engine, page_id: str, name: str | None) -> Recipe:
    if name is not None:
        return engine.project.recipe(name)
    holding = {row.recipe for row in engine.ledger.holds.held(page_id=page_id)}
    sources = {source for source, _ in engine.ledger.pages.find(page_id)}
    if not holding:
        recipes = engine.project.recipes.values()
        holding = {recipe.name for recipe in recipes if recipe.source in sources}
    known = sorted(holding & set(engine.project.recipes))
    if len(known) != 1:
        raise NotFound(
            f"Page {shown(page_id)} belongs to {', '.join(known)}: say which with --recipe."
            if known
            else f"There is no page {shown(page_id)}; the held ones are shown by: recipes held"
        )
    return engine.project.recipe(known[0])
