"""Runs of the job `stop`: each says in its words when what it stopped has ended."""

from __future__ import annotations

from typing import Any

import dagster as dg

from ..engine.stopped import open_at, stop_words
from ..ledger.controls import ControlKind, Scope
from .adoption_desk import Desk
from .run_tags import NO, STOPPING, WORDS, YES, tag_words

__all__ = ["tell_stops"]


def tell_stops(desk: Desk) -> None:
    """Tells the stops of which tasks were still to end how they came out."""
    waiting = desk.instance.get_runs(dg.RunsFilter(job_name="stop", tags={STOPPING: YES}))
    for run in waiting:
        if desk.works.is_ours(run):
            _tell(desk, run)


def _tell(desk: Desk, run: dg.DagsterRun) -> None:
    scope = _scope_of(run)
    if scope.recipe not in desk.engine.project.recipes:
        words = f"Recipe {scope.recipe} is not there any more."
    elif not _holds(desk, scope):
        words = "It was resumed before all had ended; what they have answered by then lands."
    elif open_at(desk.engine, scope):
        return
    else:
        words = f"{stop_words(desk.engine, scope)}."
    desk.instance.add_run_tags(run.run_id, {WORDS: tag_words(words), STOPPING: NO})
    desk.instance.report_engine_event(words, run)


def _holds(desk: Desk, scope: Scope) -> bool:
    return any(
        each.kind is ControlKind.STOP and each.scope.holds(scope)
        for each in desk.engine.ledger.controls.all(scope.recipe)
    )


def _scope_of(run: dg.DagsterRun) -> Scope:
    """What the run stopped, from its config, which it has accepted."""
    config: Any = run.run_config
    given: dict[str, Any] = config["ops"]["recipes_stop"]["config"]
    names = ("recipe", "folder", "batch", "step")
    recipe, folder, batch, step = (str(given.get(name) or "") for name in names)
    return Scope(recipe, folder.rstrip("/"), batch, step)
