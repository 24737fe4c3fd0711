"""A run that a person cancelled: what it had to do is stopped until a person asks for it again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..ledger.controls import Control, ControlKind, Scope
from ..ledger.tasks import TaskHead, TaskRow
from ..recipe import Recipe
from .engine import Engine
from .heeding import heed, steps_of_stage
from .look import BatchView, PageState, look
from .stopped import where_stopped

__all__ = [
    "StoppedRun",
    "cancelled_words",
    "settle_cancelled",
    "stop_cancelled",
    "take_up",
]


@dataclass(frozen=True)
class StoppedRun:
    """Where it stands, in words. `ending` tasks are to end, `unasked` could not be asked."""

    words: str
    ending: tuple[TaskHead | TaskRow, ...]
    unasked: tuple[str, ...]


_LEFT = (PageState.TODO, PageState.WAITING, PageState.OPEN)


def stop_cancelled(
    engine: Engine, recipe: Recipe, batch: str, steps: Collection[str], reason: str
) -> StoppedRun | None:
    """Stops what the steps have left to do in the batch: no automation sends it, what is out is
    ended at its places, and what it answers lands. None when nothing is left.
    """
    left = _left(look(engine, recipe, batch))
    wanted = [step for step in left if step in steps]
    if not wanted:
        return None
    # Named as a whole where nothing else of the batch goes on.
    whole = len(wanted) == len(left)
    names = [""] if whole else wanted
    scopes = [Scope(recipe.name, batch=batch, step=name) for name in names]
    engine.ledger.controls.decide(ControlKind.CANCEL, scopes, reason)
    heeded = heed(engine, _open_heads(engine, scopes))
    words = where_stopped(engine, recipe, [batch], wanted)
    return StoppedRun(words, tuple(heeded.tasks), tuple(heeded.unasked))


def settle_cancelled(engine: Engine, recipe: Recipe, batch: str) -> None:
    """Forgets that the batch was cancelled when all of it has landed nevertheless."""
    cancelled = _cancelled(engine, recipe.name, batch)
    if cancelled and not _left(look(engine, recipe, batch)):
        _end(engine, cancelled)


def take_up(engine: Engine, recipe: str, batches: Iterable[str], steps: Collection[str]) -> int:
    """A person asks for these steps of the batches again: they are not stopped by the end of an
    earlier run any more. Gives how many were.
    """
    wanted = set(batches)
    found = [
        control
        for control in engine.ledger.controls.all(recipe)
        if control.kind is ControlKind.CANCEL
        and control.scope.batch in wanted
        and control.scope.step in ("", *steps)
    ]
    return _end(engine, found)


def _end(engine: Engine, controls: Iterable[Control]) -> int:
    """Takes these back; gives how many."""
    return sum(
        len(engine.ledger.controls.end((ControlKind.CANCEL,), control.scope))
        for control in controls
    )


def cancelled_words(
    engine: Engine, recipe: Recipe, controls: Sequence[Control]
) -> Iterator[tuple[list[Control], str]]:
    """Those of each folder, and where the batches stand that were cancelled there, in words."""
    by_folder: dict[str, list[Control]] = defaultdict(list)
    for control in controls:
        by_folder[control.scope.batch.rpartition("/")[0]].append(control)
    for folder, here in by_folder.items():
        batches = sorted({control.scope.batch for control in here})
        steps = {control.scope.step for control in here}
        named = [step.name for step in recipe.steps if "" in steps or step.name in steps]
        standing = where_stopped(engine, recipe, batches, named, folder)
        yield here, f"{standing}. {_why(recipe.name, folder, batches, here)}"


def _why(recipe: str, folder: str, batches: Sequence[str], controls: Sequence[Control]) -> str:
    if len(batches) == 1:
        what, reasons = f"batch {batches[0]}", sorted({control.words for control in controls})
        how = f"was stopped at {controls[0].since:%Y-%m-%d %H:%M} UTC: {', '.join(reasons)}"
    else:
        what, how = f"{len(batches)} batches in {folder}", "were stopped: their runs were cancelled"
    return (
        f"{what} of {recipe} {how}. To go on, launch what is missing again, or run: recipes resume "
        f"{recipe}"
    )


def _cancelled(engine: Engine, recipe: str, batch: str) -> list[Control]:
    controls = engine.ledger.controls.of_batch(recipe, batch)
    return [control for control in controls if control.kind is ControlKind.CANCEL]


def _left(view: BatchView) -> list[str]:
    """The steps that have pages which could still be sent, or are out."""
    return [name for name, step in view.steps.items() if any(step.count(state) for state in _LEFT)]


def _open_heads(engine: Engine, scopes: Sequence[Scope]) -> list[TaskHead]:
    return [
        head
        for head in engine.ledger.tasks.heads()
        if any(
            scope.covers(head.recipe, head.batch, steps_of_stage(engine, head.recipe, head.stage))
            for scope in scopes
        )
    ]
