"""Reuse: results that another batch, or another page of this one, has landed under the same key."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from decimal import Decimal

from ..library.results import Result
from ..recipe import canonical_json, digest
from .engine import Engine
from .look import BatchView, PageState

__all__ = ["reuse_results"]


def reuse_results(engine: Engine, view: BatchView, steps: tuple[str, ...]) -> int:
    """Lands copies of results that exist under an equal key elsewhere; gives how many.

    Only batches that hold a page of the same hash are read. What is copied is what the library
    holds at that moment; a copy costs no dollars and no seconds.
    """
    missing = _missing(view, steps)
    shas = {view.pages[page_id].sha256 for pages in missing.values() for page_id in pages}
    if not shas:
        return 0
    homes = _homes(engine, view, shas)
    copied = 0
    for step, pages in missing.items():
        found = _rows_elsewhere(engine, view, step, pages, homes)
        if found:
            copied += len(found)
            task = _task_name(view, step, found)
            engine.library.land(view.recipe.name, step, view.batch, task, None, found)
    return copied


def _task_name(view: BatchView, step: str, found: list[Result]) -> str:
    """Named by what is copied where, so that doing it again writes the same file."""
    pairs = sorted((result.page_id, result.key) for result in found)
    return f"reused-{digest(canonical_json([view.batch, step, pairs]))}"


def _missing(view: BatchView, steps: tuple[str, ...]) -> dict[str, list[str]]:
    todo = (PageState.TODO, PageState.WAITING)
    return {
        step: [page_id for page_id, state in view.steps[step].states.items() if state in todo]
        for step in steps
    }


def _homes(
    engine: Engine, view: BatchView, shas: set[str]
) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Pages of the same hashes by (source, batch): hash to page ids; of this batch, equal pages."""
    homes: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    twins = engine.ledger.pages.twins(shas, beside=(view.source, view.batch))
    for sha256, places in twins.items():
        for source, batch, page_id in places:
            homes[source, batch][sha256].append(page_id)
    here: dict[str, list[str]] = {}
    counts = Counter(page.sha256 for page in view.pages.values())
    if len(counts) < len(view.pages):
        for page in view.pages.values():
            if counts[page.sha256] > 1 and page.sha256 in shas:
                here.setdefault(page.sha256, []).append(page.page_id)
        homes[view.source, view.batch] = here
    return homes


def _rows_elsewhere(
    engine: Engine,
    view: BatchView,
    step: str,
    pages: list[str],
    homes: dict[tuple[str, str], dict[str, list[str]]],
) -> list[Result]:
    found: dict[str, Result] = {}
    fingerprint = view.recipe.fingerprint(step)
    for (source, batch), by_sha in homes.items():
        pairs = {
            (other, view.steps[step].keys[page_id])
            for page_id in pages
            if page_id not in found
            for other in by_sha.get(view.pages[page_id].sha256, ())
            if not (other == page_id and batch == view.batch and source == view.source)
        }
        if not pairs:
            continue
        for recipe in engine.project.recipes.values():
            if recipe.source != source:
                continue
            for other_step in recipe.steps:
                if recipe.fingerprint(other_step.name) == fingerprint:
                    rows = engine.library.rows(recipe.name, other_step.name, batch, pairs)
                    _take(found, rows, view, step, pages)
    return list(found.values())


def _take(
    found: dict[str, Result], rows: list[Result], view: BatchView, step: str, pages: list[str]
) -> None:
    by_key = {row.key: row for row in rows}
    for page_id in pages:
        row = by_key.get(view.steps[step].keys[page_id])
        if row is not None and page_id not in found:
            found[page_id] = row._replace(
                page_id=page_id,
                seconds=0.0,
                cost_usd=None if row.cost_usd is None else Decimal(0),
                landed_at=datetime.now(UTC),
            )
