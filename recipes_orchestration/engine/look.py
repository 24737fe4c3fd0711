"""Look: how each page of a batch stands at each step, read from library and ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil

from ..ledger.holds import HoldRow
from ..ledger.pages import BatchPage
from ..ledger.tasks import TaskRow
from ..library.landed_pairs import LandedPairs, share_of
from ..recipe import Recipe, Step, page_keys
from .engine import Engine

__all__ = ["ASIDE", "BatchView", "HeldPage", "PageState", "StepView", "judge_batch", "look"]


ASIDE = "aside"
"""The reason of a hold that is no wait: a person has set the page aside for good."""

# The cause of a hold that no step is to blame for: the file itself cannot be read.
PAGE = "page"


class PageState(StrEnum):
    """How one page stands at one step."""

    LANDED = "landed"
    HELD = "held"  # waits for a person
    OPEN = "open"  # in a task that has not ended
    TODO = "todo"  # can be sent now
    WAITING = "waiting"  # needs a result that is not there yet


@dataclass(frozen=True)
class HeldPage:
    """A page that waits for a person at a step, with the reason.

    `cause` is the step at which it is held in its own right: this one, or one that this one needs.
    `aside`: a person has set it aside, so that nothing waits for it.
    """

    page_id: str
    step: str
    words: str
    cause: str
    aside: bool = False


@dataclass
class StepView:
    """The pages of a batch at one step. `keys` are the keys of the pages that are not gone.

    `kept`: results have landed, of whatever pages and keys.
    """

    step: Step
    fingerprint: str
    keys: dict[str, str] = field(default_factory=dict[str, str])
    states: dict[str, PageState] = field(default_factory=dict[str, PageState])
    held: list[HeldPage] = field(default_factory=list[HeldPage])
    kept: bool = False

    def count(self, state: PageState) -> int:
        """How many pages stand so."""
        return list(self.states.values()).count(state)

    @property
    def pages(self) -> int:
        """Pages of the batch that are not gone."""
        return len(self.states)

    @property
    def landed(self) -> int:
        """Pages whose result for the current key is in the library."""
        return self.count(PageState.LANDED)

    @property
    def waiting_for_a_person(self) -> list[HeldPage]:
        """The held pages without those that were set aside."""
        return [page for page in self.held if not page.aside]

    def ready(self) -> bool:
        """Whether all pages have landed."""
        return self.count(PageState.LANDED) == len(self.states)

    def settled(self) -> bool:
        """Whether no page is left to do: each has landed or waits for a person."""
        return all(state in (PageState.LANDED, PageState.HELD) for state in self.states.values())

    def complete(self, max_held: float) -> bool:
        """Whether the partition may be materialized: settled, few held, and something landed.

        `max_held` is a share of the pages, 0 to 1. A batch whose pages are all gone counts when
        results of them were kept.
        """
        if not self.states:
            return self.kept
        few = len(self.waiting_for_a_person) <= ceil(max_held * self.pages)
        return self.settled() and few and self.landed > 0


@dataclass(frozen=True)
class BatchView:
    """One batch of a recipe's source at the steps that were looked at."""

    recipe: Recipe
    source: str
    batch: str
    pages: Mapping[str, BatchPage]
    steps: Mapping[str, StepView]


def look(engine: Engine, recipe: Recipe, batch: str, steps: Collection[str] = ()) -> BatchView:
    """How the batch stands at the named steps (all when none is named) and at what they need."""
    return judge_batch(
        recipe,
        batch,
        pages=engine.ledger.pages.in_batch(recipe.source, batch),
        steps=steps,
        landed={
            step.name: engine.library.landed(recipe.name, step.name, batch)
            for step in _with_needs(recipe, steps)
        },
        attempts=engine.ledger.holds.attempts_of(recipe.name, recipe.source, batch),
        tasks=engine.ledger.tasks.open(recipe=recipe.name, batch=batch),
    )


def judge_batch(
    recipe: Recipe,
    batch: str,
    *,
    pages: Sequence[BatchPage],
    landed: Mapping[str, AbstractSet[tuple[str, str]]],
    attempts: Mapping[tuple[str, str, str], HoldRow],
    tasks: Sequence[TaskRow] = (),
    steps: Collection[str] = (),
) -> BatchView:
    """The same from what has been read. Pure.

    `landed` holds (page_id, key) pairs by step, `attempts` the holds and failures by (page_id,
    step, key), `tasks` the open ones of the batch.
    """
    present = {page.page_id: page for page in pages if not page.gone}
    shas = [page.sha256 for page in present.values()]
    problems = any(page.problem for page in present.values())
    in_tasks = _open_work(tasks)
    views: dict[str, StepView] = {}
    for step in _with_needs(recipe, steps):
        fingerprint = recipe.fingerprint(step.name)
        view = StepView(step=step, fingerprint=fingerprint)
        done = landed.get(step.name, frozenset())
        view.kept = bool(done)
        open_pages = in_tasks.get((step.name, fingerprint), frozenset())
        states_of_needs = [views[need].states for need in step.needs]
        view.keys = dict(zip(present, map(page_keys(fingerprint), shas), strict=True))
        # What most pages are: ready, with nothing known of them yet.
        ready = not attempts and not open_pages and all(views[need].ready() for need in step.needs)
        views[step.name] = view
        share = share_of(done, view.keys)
        if share or (share is False and ready and not problems):
            common = PageState.LANDED if share else PageState.TODO
            view.states = dict.fromkeys(view.keys, common)
            continue
        pairs = done.pairs if isinstance(done, LandedPairs) else done
        for pair in view.keys.items():
            page_id, key = pair
            if pair in pairs:
                view.states[page_id] = PageState.LANDED
                continue
            page = present[page_id]
            if ready and not page.problem:
                view.states[page_id] = PageState.TODO
                continue
            hold = attempts.get((page_id, step.name, key)) if attempts else None
            if hold is not None and hold.held and hold.reason == ASIDE:
                state = PageState.HELD
                view.held.append(HeldPage(page_id, step.name, hold.words, step.name, aside=True))
            elif page.problem:
                state = PageState.HELD
                view.held.append(HeldPage(page.page_id, step.name, page.problem, PAGE))
            elif hold is not None and hold.held:
                state = PageState.HELD
                view.held.append(HeldPage(page.page_id, step.name, hold.words, step.name))
            else:
                needed = [states[page.page_id] for states in states_of_needs]
                if PageState.HELD in needed:
                    held_need = step.needs[needed.index(PageState.HELD)]
                    state = PageState.HELD
                    view.held.append(_held_by_need(views[held_need], page.page_id, step))
                elif (page.page_id, page.sha256) in open_pages:
                    state = PageState.OPEN
                elif needed.count(PageState.LANDED) == len(needed):
                    state = PageState.TODO
                else:
                    state = PageState.WAITING
            view.states[page_id] = state
    return BatchView(recipe, recipe.source, batch, present, views)


def _held_by_need(need: StepView, page_id: str, step: Step) -> HeldPage:
    held = next(held for held in need.held if held.page_id == page_id)
    return HeldPage(page_id, step.name, held.words, held.cause, held.aside)


def _with_needs(recipe: Recipe, steps: Collection[str]) -> list[Step]:
    """The named steps and all they need, in the recipe's order."""
    if not steps:
        return list(recipe.steps)
    wanted = set(steps)
    for step in reversed(recipe.steps):
        if step.name in wanted:
            wanted.update(step.needs)
    return [step for step in recipe.steps if step.name in wanted]


def _open_work(tasks: Sequence[TaskRow]) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """(page_id, sha256) pairs by (step, fingerprint) that open tasks are working on."""
    work: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for task in tasks:
        pairs = {(page_id, sha256) for page_id, sha256 in task.pages}
        for step, fingerprint in task.fingerprints.items():
            work.setdefault((step, fingerprint), set()).update(pairs)
    return work
