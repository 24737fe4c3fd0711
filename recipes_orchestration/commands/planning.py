"""The work of `recipes plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..engine.plan import StagePlan, plan_recipe
from .opening import batches_in, opened
from .output import Output, count, duration

__all__ = ["show_plan"]


def show_plan(project: Path | None, recipe: str, *, folder: str | None, as_json: bool) -> None:
    """Prints per stage what is to be done and about how long it takes."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        chosen = engine.project.recipe(recipe)
        if not batches_in(engine, chosen.source, folder):
            output.line(f"No pages of source {chosen.source} are known yet: recipes discover")
        plans = plan_recipe(engine, chosen, folder)
        workers = engine.project.local.processes
    for plan in plans:
        _show(output, plan, workers)
    output.document(
        {
            "recipe": chosen.name,
            "folder": folder,
            "stages": [_document(plan, workers) for plan in plans],
        }
    )


def _show(output: Output, plan: StagePlan, workers: int) -> None:
    stage = plan.stage
    output.line(
        f"Stage {stage.name} at {stage.place} with {count(workers, 'worker')}: "
        f"{count(plan.pages, 'page')} to do in {count(plan.batches, 'batch', 'batches')}"
    )
    output.table(
        ["step", "pages", "landed", "held", "open", "to do", "of them reused", "seconds a page"],
        [
            [
                name,
                *(f"{number:,}" for number in (step.pages, step.landed, step.held, step.open)),
                f"{step.todo:,}",
                f"{step.reused:,}",
                "unknown" if step.seconds_per_page is None else f"{step.seconds_per_page:.3g}",
            ]
            for name, step in plan.steps.items()
        ],
    )
    output.line(_time(plan, workers))
    output.line()


def _time(plan: StagePlan, workers: int) -> str:
    if not plan.pages:
        return "Nothing to do."
    seconds = plan.seconds(workers)
    if seconds is None:
        return "How long it takes is not known: nothing of these steps has landed yet."
    return f"About {duration(seconds)}, going by what has landed before."


def _document(plan: StagePlan, workers: int) -> dict[str, Any]:
    return {
        "stage": plan.stage.name,
        "place": plan.stage.place,
        "workers": workers,
        "batches": plan.batches,
        "pages": plan.pages,
        "estimated_seconds": plan.seconds(workers),
        "steps": {
            name: {
                "pages": step.pages,
                "landed": step.landed,
                "held": step.held,
                "open": step.open,
                "todo": step.todo,
                "reused": step.reused,
                "seconds_per_page": step.seconds_per_page,
            }
            for name, step in plan.steps.items()
        },
    }
