"""The work of `recipes held` and `retry`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..engine.by_hand import retry
from ..engine.controls import scope_of
from ..engine.engine import Engine
from ..engine.look import HeldPage, look
from ..errors import NotFound
from ..ledger.pages import BatchRow
from ..pages.naming import name_from_bytes, shown
from ..recipe import Recipe
from .opening import batches_in, opened, recipes_named, steps_named
from .output import Output, count

__all__ = ["retry_held", "show_held"]


def show_held(
    project: Path | None, recipe: str | None, *, folder: str | None, as_json: bool
) -> None:
    """Lists each held page with the reason, once for each step that holds it by itself."""
    output = Output(as_json=as_json)
    documents: list[dict[str, Any]] = []
    with opened(project) as engine:
        for each in recipes_named(engine.project, recipe):
            rows: list[tuple[str, str, str]] = []
            for batch, page in _held_pages(engine, each, folder):
                rows.append((shown(page.page_id), page.step, shown(page.words)))
                documents.append(
                    {
                        "recipe": each.name,
                        "step": page.step,
                        "source": each.source,
                        "batch": batch.key,
                        "page_id": page.page_id,
                        "reason": page.words,
                    }
                )
            if rows:
                output.line(f"{each.name}: {count(len(rows), 'page')} held")
                output.table(["page", "step", "reason"], rows, left=(0, 1, 2))
                output.line(f"Tried again after: recipes retry {each.name}")
            else:
                output.line(f"{each.name}: no page is held")
    output.document({"held": documents})


def _held_pages(
    engine: Engine, recipe: Recipe, folder: str | None
) -> Iterator[tuple[BatchRow, HeldPage]]:
    """Only batches in which the ledger knows of a hold or an unreadable page are looked at."""
    holding = {
        row.batch for row in engine.ledger.holds.held(recipe=recipe.name, source=recipe.source)
    }
    for batch in batches_in(engine, recipe.source, folder):
        if not batch.problems and batch.key not in holding:
            continue
        view = look(engine, recipe, batch.key)
        seen: set[tuple[str, str]] = set()
        for step in view.steps.values():
            for page in step.waiting_for_a_person:
                if (page.page_id, page.cause) not in seen:
                    seen.add((page.page_id, page.cause))
                    yield batch, page


def retry_held(
    project: Path | None,
    recipe: str,
    *,
    step: str | None,
    folder: str | None,
    batch: str | None = None,
    page: str | None,
    as_json: bool,
) -> None:
    """Forgets the holds, so that the next run tries those pages again; says what that cannot mend.

    A page whose file cannot be read is looked at again only when the file is another.
    """
    output = Output(as_json=as_json)
    page_id = None if page is None else name_from_bytes(os.fsencode(page))
    with opened(project) as engine:
        chosen = engine.project.recipe(recipe)
        if step is not None:
            steps_named(chosen, [step])
        if page_id is not None and not engine.ledger.pages.find(page_id, chosen.source):
            raise NotFound(
                f"Source {chosen.source} has no page {shown(page_id)}; the held ones are shown by: "
                f"recipes held {chosen.name}"
            )
        if batch is not None:
            scope_of(engine, chosen.name, batch=batch)
        batches = batches_in(engine, chosen.source, folder)
        if batch is not None:
            batches = [each for each in batches if each.key == batch]
        whole = folder is None and batch is None
        done = retry(engine, chosen, batches, whole=whole, step=step, page_id=page_id)
    cleared, unreadable = done.cleared, done.unreadable
    output.line(
        f"{count(cleared, 'hold')} cleared. {'Now run' if cleared else 'Nothing to do'}"
        + (f": recipes run {chosen.name}" if cleared else ".")
    )
    if unreadable:
        output.line(
            f"{count(unreadable, 'page')} cannot be read: the file itself is at fault. Mend or "
            "replace it; a changed file is looked at again by the next run, or now: "
            f"recipes discover {chosen.source}"
        )
    output.document({"recipe": chosen.name, "cleared": cleared, "unreadable": unreadable})
