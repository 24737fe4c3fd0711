"""The pages that an estimate looks at: a few of those to do and of those that have landed.

A page's SHA-256 is as good as a lot that was drawn: those with the smallest are a fair sample of
all contents, and always the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest

from ..recipe import Recipe
from .look import BatchView, PageState

__all__ = ["SampledPage", "Samples", "StepSample"]

TO_DO = 12
LANDED = 8
# Batches whose landed rows are read for what answers have cost.
BATCHES = 8

SampledPage = tuple[str, str, str]
"""Its SHA-256, its batch and its page_id."""


@dataclass
class StepSample:
    """Of one step: pages that can be sent now, pages that wait for another step, and landed ones.

    `batches` have rows of the step. `current` are the keys of those that landed for the step as the
    recipe has it, in these batches.
    """

    todo: list[SampledPage] = field(default_factory=list[SampledPage])
    waiting: list[SampledPage] = field(default_factory=list[SampledPage])
    landed: list[SampledPage] = field(default_factory=list[SampledPage])
    batches: list[str] = field(default_factory=list[str])
    current: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def pages(self) -> list[SampledPage]:
        """The pages whose questions are made for the estimate."""
        return self.todo or self.waiting


@dataclass
class Samples:
    """The samples of a recipe's steps at providers, taken while its batches are walked over."""

    recipe: Recipe
    steps: dict[str, StepSample] = field(default_factory=dict[str, StepSample])

    def __post_init__(self) -> None:
        for step in self.recipe.steps:
            if step.provider is not None:
                self.steps[step.name] = StepSample()

    def add(self, view: BatchView) -> None:
        """Takes what is wanted of one batch."""
        for name, sample in self.steps.items():
            step = view.steps[name]
            if step.kept and len(sample.batches) < BATCHES:
                sample.batches.append(view.batch)
                sample.landed = self._smallest(sample.landed, view, name, PageState.LANDED, LANDED)
                sample.current.update(
                    (page, step.keys[page])
                    for page, state in step.states.items()
                    if state is PageState.LANDED
                )
            sample.todo = self._smallest(sample.todo, view, name, PageState.TODO, TO_DO)
            if not sample.todo:
                sample.waiting = self._smallest(
                    sample.waiting, view, name, PageState.WAITING, TO_DO
                )

    def _smallest(
        self, known: list[SampledPage], view: BatchView, step: str, state: PageState, most: int
    ) -> list[SampledPage]:
        bound = known[-1][0] if len(known) == most else None
        found: Iterable[SampledPage] = (
            (view.pages[page].sha256, view.batch, page)
            for page, at in view.steps[step].states.items()
            if at is state and (bound is None or view.pages[page].sha256 < bound)
        )
        return nsmallest(most, _distinct([*known, *found]))


def _distinct(pages: Iterable[SampledPage]) -> list[SampledPage]:
    """One page of each content: equal pages are asked about once."""
    return list({page[0]: page for page in pages}.values())
