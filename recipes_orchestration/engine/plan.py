"""What a run would do: pages to do at each stage, those that are reused, and the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from ..recipe import Recipe, page_key
from ..stages import Stage, stages_of
from .engine import Engine
from .look import BatchView, PageState, StepView
from .plan_samples import Samples
from .status import iter_views

__all__ = ["StagePlan", "StepPlan", "plan_recipe"]

# Batches whose seconds are read for the estimate: enough to be fair, few enough to be quick.
SAMPLES = 8
# Landed pairs of so many batches and steps are kept while pages equal to theirs are met.
KEPT = 32
_TODO = (PageState.TODO, PageState.WAITING)


@dataclass
class StepPlan:
    """One step. `reused` of the pages `todo` have a result under an equal key elsewhere, or will.

    `sizes` counts page batches by how many pages of them are to be computed, 0 left out.
    `seconds_per_page` is the mean of what landed before, None when nothing has.
    """

    pages: int = 0
    landed: int = 0
    held: int = 0
    open: int = 0
    todo: int = 0
    reused: int = 0
    sizes: Counter[int] = field(default_factory=Counter[int])
    seconds_per_page: float | None = None

    @property
    def computed(self) -> int:
        """Pages to do that are no copies."""
        return self.todo - self.reused


@dataclass
class StagePlan:
    """One stage. `batches` are those in which something is to be done, `pages` such pages."""

    stage: Stage
    batches: int = 0
    pages: int = 0
    steps: dict[str, StepPlan] = field(default_factory=dict[str, StepPlan])

    def seconds(self, workers: int, steps: Sequence[str] = ()) -> float | None:
        """About how long it takes with so many workers; None when no step's time is known.

        `steps` keeps to these, where any are named.
        """
        total = 0.0
        for name, step in self.steps.items():
            if steps and name not in steps:
                continue
            if step.computed and step.seconds_per_page is None:
                return None
            total += step.computed * (step.seconds_per_page or 0.0)
        return total / workers


@dataclass
class _Walk:
    """What is remembered between batches: hashes met again, what was read, where times stand."""

    engine: Engine
    recipe: Recipe
    planned: set[str] = field(default_factory=set[str])
    sampled: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    read: dict[tuple[str, str], AbstractSet[tuple[str, str]]] = field(
        default_factory=dict[tuple[str, str], AbstractSet[tuple[str, str]]]
    )

    def reused(self, view: BatchView, todo: dict[str, list[str]]) -> dict[str, int]:
        """How many pages to do at each step will be copies of another page's result."""
        shas = {view.pages[page].sha256 for pages in todo.values() for page in pages}
        twins = self.engine.ledger.pages.twins(shas, beside=(view.source, view.batch))
        inside = _met_twice(page.sha256 for page in view.pages.values())
        counts: dict[str, int] = {}
        for step, pages in todo.items():
            states = view.steps[step].states.items()
            landed = (page for page, state in states if inside and state is PageState.LANDED)
            known = {view.pages[page].sha256 for page in landed} & inside
            counts[step] = 0
            for page in pages:
                sha = view.pages[page].sha256
                if sha in known or (
                    sha in twins
                    and (sha in self.planned or self._landed(view.steps[step], sha, twins[sha]))
                ):
                    counts[step] += 1
                elif sha in inside:
                    known.add(sha)
        self.planned.update(twins)
        return counts

    def _landed(self, step: StepView, sha: str, twins: Sequence[tuple[str, str, str]]) -> bool:
        key = page_key(step.fingerprint, sha)
        return any(
            (page, key) in self._pairs(step.step.name, batch)
            for source, batch, page in twins
            if source == self.recipe.source
        )

    def _pairs(self, step: str, batch: str) -> AbstractSet[tuple[str, str]]:
        if (step, batch) not in self.read:
            if len(self.read) >= KEPT:
                self.read.clear()
            self.read[step, batch] = self.engine.library.landed(self.recipe.name, step, batch)
        return self.read[step, batch]


def plan_recipe(
    engine: Engine,
    recipe: Recipe,
    folder: str | None = None,
    *,
    batches: Collection[str] = (),
    samples: Samples | None = None,
) -> list[StagePlan]:
    """Each stage of the recipe, over one folder or all; reads and changes nothing.

    `batches` keeps to these, where any are named; `samples` takes pages for an estimate on the way.
    Batches come one after another, so memory does not grow with the source. Whether a page is
    reused is judged from its equal pages in the same source.
    """
    plans = [
        StagePlan(stage, steps={step.name: StepPlan() for step in stage.steps})
        for stage in stages_of(recipe)
    ]
    walk = _Walk(engine, recipe)
    for batch, view in iter_views(engine, recipe, folder):
        if batches and batch.key not in batches:
            continue
        if samples is not None:
            samples.add(view)
        todo = {
            name: [page for page, state in step.states.items() if state in _TODO]
            for name, step in view.steps.items()
        }
        reused = walk.reused(view, todo) if any(todo.values()) else {}
        for plan in plans:
            _add(plan, view, todo, reused)
        for name, step in view.steps.items():
            seen = walk.sampled.setdefault(name, [])
            if step.landed and len(seen) < SAMPLES:
                seen.append(view.batch)
    for plan in plans:
        for name, step in plan.steps.items():
            step.seconds_per_page = _mean_seconds(engine, recipe, name, walk.sampled.get(name, []))
    return plans


def _add(
    plan: StagePlan, view: BatchView, todo: dict[str, list[str]], reused: dict[str, int]
) -> None:
    to_do: set[str] = set()
    for name, step in plan.steps.items():
        at = view.steps[name]
        step.pages += at.pages
        step.landed += at.landed
        step.held += len(at.held)
        step.open += at.count(PageState.OPEN)
        step.todo += len(todo[name])
        step.reused += reused.get(name, 0)
        if computed := len(todo[name]) - reused.get(name, 0):
            step.sizes[computed] += 1
        to_do.update(todo[name])
    plan.pages += len(to_do)
    plan.batches += bool(to_do)


def _met_twice(shas: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {sha for sha in shas if sha in seen or seen.add(sha)}


def _mean_seconds(engine: Engine, recipe: Recipe, step: str, batches: list[str]) -> float | None:
    """The mean over pages that were computed: copies took no time."""
    seconds: list[float] = []
    for batch in batches:
        table = engine.library.table(recipe.name, step, batch, columns=["seconds"])
        seconds += [each for each in table.column("seconds").to_pylist() if each > 0]
    return sum(seconds) / len(seconds) if seconds else None
