"""What came of a stop, in words, read from library and ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from ..ledger.controls import Control, ControlKind, Scope
from ..recipe import Recipe
from ..stages import Stage
from .engine import Engine
from .heeding import steps_of_stage
from .look import BatchView, PageState, look
from .status import iter_views

__all__ = ["is_stopped", "open_at", "stop_words", "stopped_words", "where_stopped"]


def stopped_words(engine: Engine, stage: Stage, batch: str) -> str:
    """`Stopped: 3 of 5 pages read at anthropic; nothing read is lost`, of one batch."""
    view = look(engine, stage.recipe, batch, [step.name for step in stage.steps])
    return _words(_unfinished([view], {step.name for step in stage.steps}))


def stop_words(engine: Engine, scope: Scope) -> str:
    """Where the scope stands after a stop: tasks that are still to end, or what has landed."""
    recipe = engine.project.recipe(scope.recipe)
    if open_tasks := open_at(engine, scope):
        return _stopping(open_tasks)
    views = (
        view
        for _, view in iter_views(engine, recipe, scope.folder or None)
        if scope.batch in ("", view.batch)
    )
    steps = {step.name for step in recipe.steps if scope.step in ("", step.name)}
    return _words(_unfinished(views, steps))


def where_stopped(
    engine: Engine,
    recipe: Recipe,
    batches: Collection[str],
    steps: Collection[str],
    folder: str = "",
) -> str:
    """The same of some steps of some batches, which lie in the folder."""
    open_tasks = Counter(
        head.place
        for head in engine.ledger.tasks.heads()
        if head.recipe == recipe.name
        and head.batch in batches
        and not set(steps).isdisjoint(steps_of_stage(engine, head.recipe, head.stage))
    )
    if open_tasks:
        return _stopping(open_tasks)
    if len(batches) == 1:
        views: Iterable[BatchView] = (look(engine, recipe, batch) for batch in batches)
    else:
        views = (view for key, view in iter_views(engine, recipe, folder) if key.key in batches)
    return _words(_unfinished(views, set(steps)))


def _stopping(open_tasks: Counter[str]) -> str:
    at = ", ".join(f"{count} at {place}" for place, count in sorted(open_tasks.items()))
    return f"Stopping: tasks are still to end, {at}; what they have answered by then lands"


def open_at(engine: Engine, scope: Scope) -> Counter[str]:
    """How many tasks of the scope are open at each place."""
    return Counter(
        head.place
        for head in engine.ledger.tasks.heads()
        if scope.covers(head.recipe, head.batch, steps_of_stage(engine, head.recipe, head.stage))
    )


def is_stopped(controls: Iterable[Control], recipe: str, batch: str, steps: Iterable[str]) -> bool:
    """Whether a stop holds for any of these steps of the batch."""
    names = tuple(steps)
    return any(
        each.kind is ControlKind.STOP and each.scope.covers(recipe, batch, names)
        for each in controls
    )


def _unfinished(views: Iterable[BatchView], steps: set[str]) -> list[tuple[str, str, int, int]]:
    """Step, place, landed and all pages of each step that has some landed and not all.

    All steps when none is half done.
    """
    landed: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    places: dict[str, str] = {}
    for view in views:
        for name in steps & view.steps.keys():
            places[name] = view.steps[name].step.place
            landed[name] += view.steps[name].count(PageState.LANDED)
            pages[name] += view.steps[name].pages
    counted = [(name, places[name], landed[name], pages[name]) for name in places]
    half = [each for each in counted if 0 < each[2] < each[3]]
    return sorted(half or counted)


def _words(counted: list[tuple[str, str, int, int]]) -> str:
    parts = [
        f"{landed:,} of {pages:,} pages "
        + (f"read at {place}" if name == "read" else f"through {name} at {place}")
        for name, place, landed, pages in counted
    ]
    return f"Stopped: {', '.join(parts) or 'there are no pages'}; nothing read is lost"
