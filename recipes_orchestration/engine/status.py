"""Where every folder stands at every step, and what a run would do: read, never remembered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..ledger.holds import HoldRow
from ..ledger.pages import BatchPage, BatchRow
from ..ledger.tasks import TaskRow
from ..recipe import Recipe
from .engine import Engine
from .look import BatchView, PageState, judge_batch

__all__ = ["FolderStatus", "StepCount", "iter_views", "status_of"]

# Batches whose library folders are listed and read together.
TOGETHER = 64


@dataclass
class StepCount:
    """Pages of a folder at one step. `complete` counts batches that may be materialized."""

    pages: int = 0
    landed: int = 0
    held: int = 0
    open: int = 0
    todo: int = 0
    batches: int = 0
    complete: int = 0


@dataclass
class FolderStatus:
    """A folder of the source at each step of the recipe."""

    folder: str
    steps: dict[str, StepCount] = field(default_factory=dict[str, StepCount])

    def add(self, view: BatchView, steps: Iterable[str]) -> None:
        """Adds a batch of the folder, as it was seen, to the counts of these steps."""
        for name in steps:
            step = view.steps[name]
            count = self.steps.setdefault(name, StepCount())
            count.pages += step.pages
            count.landed += step.landed
            count.held += len(step.waiting_for_a_person)
            count.open += step.count(PageState.OPEN)
            count.todo += step.count(PageState.TODO) + step.count(PageState.WAITING)
            count.batches += 1
            count.complete += step.complete(view.recipe.max_held)


def iter_views(
    engine: Engine, recipe: Recipe, folder: str | None = None
) -> Iterator[tuple[BatchRow, BatchView]]:
    """Every batch of the recipe's source as it stands, in the memory of a few batches.

    `folder` keeps to that folder and those below it.
    """
    held: dict[str, dict[tuple[str, str, str], HoldRow]] = defaultdict(dict)
    for row in engine.ledger.holds.held(recipe=recipe.name, source=recipe.source):
        held[row.batch][row.page_id, row.step, row.key] = row
    tasks: dict[str, list[TaskRow]] = defaultdict(list)
    for task in engine.ledger.tasks.open(recipe=recipe.name):
        tasks[task.batch].append(task)
    rows = engine.ledger.pages.iter_batches(recipe.source, folder)
    while together := list(islice(rows, TOGETHER)):
        yield from _views(engine, recipe, together, held, tasks)


def _views(
    engine: Engine,
    recipe: Recipe,
    rows: Sequence[tuple[BatchRow, list[BatchPage]]],
    held: Mapping[str, Mapping[tuple[str, str, str], HoldRow]],
    tasks: Mapping[str, Sequence[TaskRow]],
) -> Iterator[tuple[BatchRow, BatchView]]:
    landed = dict(
        engine.library.landed_many(
            recipe.name, [step.name for step in recipe.steps], [batch.key for batch, _ in rows]
        )
    )
    for batch, pages in rows:
        yield (
            batch,
            judge_batch(
                recipe,
                batch.key,
                pages=pages,
                landed=landed[batch.key],
                attempts=held.get(batch.key, {}),
                tasks=tasks.get(batch.key, ()),
            ),
        )


def status_of(engine: Engine, recipe: Recipe, folder: str | None = None) -> list[FolderStatus]:
    """Folder by step counts, in the order of the folders; those whose pages are all gone are not.

    Their results are kept all the same.
    """
    folders: dict[str, FolderStatus] = {}
    for batch, view in iter_views(engine, recipe, folder):
        if view.pages:
            folders.setdefault(batch.folder, FolderStatus(batch.folder)).add(view, view.steps)
    return list(folders.values())
