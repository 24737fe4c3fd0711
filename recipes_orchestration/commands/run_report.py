"""How a run ended: the folder x step table, what is held, and what went wrong."""

from __future__ import annotations

from typing import Any

from ..pages.naming import shown
from .counts import folders_document, show_folders, total_of
from .discovering import discovered_document
from .output import Output, count, duration
from .run_outcome import Outcome, StageOutcome

__all__ = ["tell_run"]

_SHOWN = 5


def tell_run(output: Output, outcome: Outcome) -> None:
    """Prints the run's end: tables on stdout, what is wrong on stderr, or one JSON document."""
    recipe = outcome.recipe
    for stage in outcome.stages:
        if stage.folders:
            output.line(f"{recipe.name}, stage {stage.stage.name}: pages landed of those there are")
            show_folders(output, list(stage.folders.values()), stage.steps)
        if not outcome.stopped:
            landed = count(stage.landed, "result")
            output.line(f"{landed} landed in {duration(outcome.seconds)}.")
            _tell_wrong(output, stage)
    if not any(stage.folders or stage.failures for stage in outcome.stages) and not outcome.stopped:
        output.line(f"{recipe.name}: there are no pages in source {recipe.source}.")
    held = sum(_held(stage) for stage in outcome.stages)
    if held:
        output.line(f"Pages are held; they and their reasons: recipes held {recipe.name}")
    if outcome.stopped:
        output.note(f"Stopped. What has landed is kept. To go on: recipes run {recipe.name}")
    output.document(_document(outcome))


def _tell_wrong(output: Output, stage: StageOutcome) -> None:
    for batch, error in list(stage.failures.items())[:_SHOWN]:
        output.note(f"{shown(batch)}: {shown(str(error))}")
    if len(stage.failures) > _SHOWN:
        output.note(f"and {len(stage.failures) - _SHOWN} more batches that failed")
    if stage.failure is not None:
        output.note(f"Stage {stage.stage.name} stopped: {shown(str(stage.failure))}")
    elif stage.waiting:
        needed = ", ".join(sorted(stage.waiting))
        output.note(f"{', '.join(stage.steps)} cannot go on before {needed} has landed.")
    elif stage.incomplete:
        output.note(
            f"Not complete: {', '.join(map(shown, stage.incomplete[:_SHOWN]))}"
            f"{' ...' if len(stage.incomplete) > _SHOWN else ''}"
        )


def _held(stage: StageOutcome) -> int:
    return sum(step.held for step in total_of(stage.folders.values()).values())


def _document(outcome: Outcome) -> dict[str, Any]:
    found = outcome.discovered
    return {
        "recipe": outcome.recipe.name,
        "source": outcome.recipe.source,
        "complete": outcome.exit_code == 0,
        "stopped": outcome.stopped,
        "exit_code": outcome.exit_code,
        "seconds": round(outcome.seconds, 3),
        "materialized": outcome.materialized,
        "discovered": None if found is None else discovered_document(found),
        "stages": [_stage_document(stage) for stage in outcome.stages],
    }


def _stage_document(stage: StageOutcome) -> dict[str, Any]:
    return {
        "stage": stage.stage.name,
        "place": stage.stage.place,
        "steps": stage.steps,
        "landed_now": stage.landed,
        "folders": folders_document(stage.folders.values()),
        "not_complete": stage.incomplete,
        "failed_batches": {batch: str(error) for batch, error in stage.failures.items()},
        "failure": None if stage.failure is None else str(stage.failure),
    }
