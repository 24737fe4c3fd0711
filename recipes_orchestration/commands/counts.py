"""The folder x step table: what `status` shows and `run` ends with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..engine.status import FolderStatus, StepCount
from ..pages.naming import shown
from .output import Output

__all__ = ["folders_document", "show_folders", "step_document", "total_of"]


def total_of(folders: Iterable[FolderStatus]) -> dict[str, StepCount]:
    """The sums over all folders, by step."""
    totals: dict[str, StepCount] = {}
    for folder in folders:
        for name, step in folder.steps.items():
            total = totals.setdefault(name, StepCount())
            for field in ("pages", "landed", "held", "open", "todo", "batches", "complete"):
                setattr(total, field, getattr(total, field) + getattr(step, field))
    return totals


def show_folders(output: Output, folders: Sequence[FolderStatus], steps: Sequence[str]) -> None:
    """A row a folder: its batches, and at each step the pages that landed of those there are."""
    totals = total_of(folders)
    output.table(
        ["folder", "batches", *steps],
        [
            [shown(each.folder), _batches(each.steps), *(_cell(each.steps[s]) for s in steps)]
            for each in folders
        ],
        totals=["total", _batches(totals), *(_cell(totals[s]) for s in steps)] if totals else None,
    )


def folders_document(folders: Iterable[FolderStatus]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [
        {
            "folder": folder.folder,
            "steps": {name: step_document(step) for name, step in folder.steps.items()},
        }
        for folder in folders
    ]


def step_document(step: StepCount) -> dict[str, int]:
    """One step's counts for JSON; `complete` counts batches that may be materialized."""
    return {
        "pages": step.pages,
        "landed": step.landed,
        "held": step.held,
        "open": step.open,
        "todo": step.todo,
        "batches": step.batches,
        "complete": step.complete,
    }


def _batches(steps: dict[str, StepCount]) -> str:
    return f"{max((step.batches for step in steps.values()), default=0):,}"


def _cell(step: StepCount) -> str:
    text = f"{step.landed:,}/{step.pages:,}"
    if step.held:
        text += f", {step.held:,} held"
    if step.open:
        text += f", {step.open:,} open"
    return text
