"""The work of `recipes plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..engine.plan import StagePlan
from ..engine.sheet import Scope, sheet_of
from ..engine.sheet_words import sheet_document
from ..recipe import LOCAL
from .opening import batches_in, opened
from .output import Output, count, duration
from .sheets import tell_sheet

__all__ = ["show_plan"]


def show_plan(project: Path | None, recipe: str, *, folder: str | None, as_json: bool) -> None:
    """Prints per stage what is to be done, about how long it takes, and what it costs."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        chosen = engine.project.recipe(recipe)
        if not batches_in(engine, chosen.source, folder):
            output.line(f"No pages of source {chosen.source} are known yet: recipes discover")
        sheet = sheet_of(engine, chosen, Scope(folder))
        here = engine.project.local.processes
    # Elsewhere nobody here knows how many work at once.
    plans = sheet.plans
    workers = [here if plan.stage.place == LOCAL else None for plan in plans]
    for plan, number in zip(plans, workers, strict=True):
        _show(output, plan, number)
    if sheet.pages:
        output.line("The sheet")
        tell_sheet(output, sheet)
    output.document(
        {
            "recipe": chosen.name,
            "folder": folder,
            "stages": [_document(*each) for each in zip(plans, workers, strict=True)],
            "sheet": sheet_document(sheet),
        }
    )


def _show(output: Output, plan: StagePlan, workers: int | None) -> None:
    stage = plan.stage
    by = "" if workers is None else f" with {count(workers, 'worker')}"
    output.line(
        f"Stage {stage.name} at {stage.place}{by}: "
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


def _time(plan: StagePlan, workers: int | None) -> str:
    if not plan.pages:
        return "Nothing to do."
    seconds = plan.seconds(workers or 1)
    if seconds is None:
        return "How long it takes is not known: nothing of these steps has landed yet."
    if workers is None:
        return f"About {duration(seconds)} of work there, going by what has landed before."
    return f"About {duration(seconds)}, going by what has landed before."


def _document(plan: StagePlan, workers: int | None) -> dict[str, Any]:
    return {
        "stage": plan.stage.name,
        "place": plan.stage.place,
        "workers": workers,
        "batches": plan.batches,
        "pages": plan.pages,
        "estimated_seconds": plan.seconds(workers or 1),
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
