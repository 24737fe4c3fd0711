"""What a person decides about single pages: tried again, set aside, or given a value by hand."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ..errors import HeldBack, NotFound
from ..ledger.holds import Failure
from ..ledger.pages import BatchRow
from ..library.results import Result
from ..pages.naming import shown
from ..recipe import Recipe, canonical_json, digest
from .engine import Engine
from .look import ASIDE, BatchView, PageState, look

__all__ = ["BY_HAND", "Retried", "give_value", "retry", "set_aside", "value_from"]

BY_HAND = "by hand"
"""The model of a value that a person gave."""


@dataclass(frozen=True)
class Retried:
    """How many holds were cleared, and how many pages cannot be read whatever is tried."""

    cleared: int
    unreadable: int


def retry(
    engine: Engine,
    recipe: Recipe,
    batches: Collection[BatchRow],
    *,
    whole: bool,
    step: str | None = None,
    page_id: str | None = None,
) -> Retried:
    """Forgets the holds of the batches, so that the next run tries those pages again.

    `whole`: the batches are all there are. Held tasks are asked about again. A page that was set
    aside stays so, unless it is the one that is named.
    """
    holds, tasks = engine.ledger.holds, engine.ledger.tasks
    keep = ASIDE if page_id is None else None
    if whole:
        cleared = holds.clear(recipe.name, step=step, page_id=page_id, keep=keep)
        cleared += tasks.release(recipe.name) if page_id is None else 0
    else:
        holding = {row.batch for row in holds.held(recipe=recipe.name, source=recipe.source)}
        cleared = sum(
            holds.clear(recipe.name, step=step, batch=batch.key, page_id=page_id, keep=keep)
            for batch in batches
            if batch.key in holding
        )
        if page_id is None:
            cleared += sum(tasks.release(recipe.name, batch=batch.key) for batch in batches)
    return Retried(cleared, _unreadable(engine, recipe, batches, page_id))


def _unreadable(
    engine: Engine, recipe: Recipe, batches: Collection[BatchRow], page_id: str | None
) -> int:
    if page_id is None:
        return sum(batch.problems for batch in batches)
    rows = engine.ledger.pages.find(page_id, recipe.source)
    return sum(1 for _, row in rows if row.problem is not None and not row.gone)


def set_aside(
    engine: Engine, recipe: Recipe, page_id: str, step: str | None, reason: str, by: str
) -> str:
    """The page is left out for good: nothing is sent for it and nothing waits for it; says so.

    One that cannot be read is left out at every step.

    Raises `HeldBack` when it is out at a place, or has landed.
    """
    view, name = _held_page(engine, recipe, page_id, step)
    words = f"Set aside{f' by {by}' if by else ''}: {reason}"
    names = list(view.steps) if view.pages[page_id].problem else [name]
    for each in names:
        key = view.steps[each].keys[page_id]
        engine.ledger.holds.clear(recipe.name, step=each, page_id=page_id)
        where = (recipe.name, each, recipe.source, view.batch, page_id, key)
        engine.ledger.holds.failed_many([Failure(*where, ASIDE, words, hold=True)])
    return f"{shown(page_id)} is set aside at {name}: {reason}"


def give_value(
    engine: Engine,
    recipe: Recipe,
    page_id: str,
    step: str | None,
    value: Any,
    reason: str,
    by: str,
) -> str:
    """Lands a value that a person gives, marked as such with the reason; says so.

    Raises `HeldBack` when the page is out at a place, or has landed.
    """
    view, name = _held_page(engine, recipe, page_id, step)
    key = view.steps[name].keys[page_id]
    result = Result(
        page_id=page_id,
        key=key,
        value=value,
        seconds=0.0,
        task=f"by-hand-{digest(canonical_json([view.batch, name, page_id, key]))}",
        landed_at=datetime.now(UTC),
        model=BY_HAND,
        cost_usd=Decimal(0),
        price=BY_HAND,
        note=f"{by}: {reason}" if by else reason,
    )
    engine.library.land(recipe.name, name, view.batch, result.task, None, [result])
    engine.ledger.holds.landed_since([key])
    return f"{shown(page_id)} has a value by hand at {name}: {reason}"


def value_from(text: str) -> Any:
    """The JSON value; words that are no JSON are the text of a page."""
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text}


def _held_page(
    engine: Engine, recipe: Recipe, page_id: str, step: str | None
) -> tuple[BatchView, str]:
    """The page's batch as it stands, and the step at which it is held by itself."""
    found = [
        row.batch
        for _, row in engine.ledger.pages.find(page_id, recipe.source)
        if row.batch is not None and not row.gone
    ]
    if not found:
        raise NotFound(
            f"Source {recipe.source} has no page {shown(page_id)}; the held ones are shown by: "
            f"recipes held {recipe.name}"
        )
    view = look(engine, recipe, found[0])
    if step is None:
        step = _only_step(view, page_id)
    elif step not in view.steps:
        raise NotFound(f"Recipe {recipe.name} has no step {shown(step)}.")
    state = view.steps[step].states[page_id]
    if state is PageState.OPEN:
        raise HeldBack(
            f"{shown(page_id)} is out at {view.steps[step].step.place} for {step}: wait until it "
            f"has landed, or run: recipes stop {recipe.name} --batch {view.batch}"
        )
    if state is PageState.LANDED:
        raise HeldBack(f"{shown(page_id)} has landed at {step}: there is nothing to release.")
    return view, step


def _only_step(view: BatchView, page_id: str) -> str:
    """The first step that holds the page, or that it waits for."""
    for name, at in view.steps.items():
        if at.states[page_id] is PageState.HELD:
            return name
    for name, at in view.steps.items():
        if at.states[page_id] is not PageState.LANDED:
            return name
    return list(view.steps)[-1]
