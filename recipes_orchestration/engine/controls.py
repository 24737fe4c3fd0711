"""What a person can decide about a recipe or a part of it, and what it does at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import HeldBack, NotFound
from ..ledger.controls import Control, ControlKind, Scope
from ..ledger.tasks import TaskHead
from ..pages.naming import shown
from ..recipe import LOCAL, Step
from .engine import Engine
from .gates import halt_words
from .heeding import heed, steps_of_stage
from .look import BatchView, PageState
from .poll import poll_open
from .status import iter_views
from .stopped import stop_words
from .stopping import land_stopped

__all__ = ["Decision", "follow_stop", "hurry", "pause", "resume", "scope_of", "stop"]

_HALTS = (ControlKind.PAUSE, ControlKind.STOP, ControlKind.CANCEL)


@dataclass(frozen=True)
class Decision:
    """What a decision did, in words. `asked` tasks were asked to end, `unasked` could not be."""

    words: str
    asked: int = 0
    unasked: tuple[str, ...] = ()


def scope_of(
    engine: Engine, recipe: str, folder: str = "", batch: str = "", step: str = ""
) -> Scope:
    """The scope of these names. Raises `NotFound` when the project has no such thing."""
    known = engine.project.recipe(recipe)
    if step and step not in [each.name for each in known.steps]:
        raise NotFound(
            f"Recipe {recipe} has no step {shown(step)}; its steps are "
            f"{', '.join(each.name for each in known.steps)}."
        )
    folder = folder.rstrip("/")
    if folder and not engine.ledger.pages.batches(known.source, folder):
        raise NotFound(
            f"Source {known.source} has no pages in a folder {shown(folder)}; its folders are "
            "shown by: recipes status"
        )
    if batch and engine.ledger.pages.batch(known.source, batch) is None:
        raise NotFound(
            f"Source {known.source} has no batch {shown(batch)}; a batch is named FOLDER/0001, as "
            "`recipes show PAGE` gives it."
        )
    return Scope(recipe, folder, batch, step)


def pause(engine: Engine, scope: Scope, reason: str = "", by: str = "") -> Decision:
    """Nothing of the scope is sent any more; what is out goes on and lands."""
    engine.ledger.controls.decide(ControlKind.PAUSE, [scope], reason, by)
    out = len(_open_heads(engine, scope))
    return Decision(
        f"{scope.words} is paused: nothing new is sent. "
        + (f"{out} tasks that are out go on and land. " if out else "Nothing of it is out. ")
        + f"To go on, run: recipes resume {scope.recipe}"
    )


def resume(engine: Engine, scope: Scope) -> Decision:
    """Takes back what was paused or stopped inside the scope. What was stopped is not restarted."""
    ended = engine.ledger.controls.end(_HALTS, scope)
    left = [
        each
        for each in engine.ledger.controls.all(scope.recipe)
        if each.kind in _HALTS and each.scope.holds(scope)
    ]
    if left:
        return Decision(f"{scope.words} stays as it is: {halt_words(left[0])}")
    if not ended:
        return Decision(f"{scope.words} was neither paused nor stopped.")
    if any(each.kind.stops for each in ended):
        how = "What was stopped is not begun again by itself; only what is missing is sent by"
    else:
        how = "What waits in Dagster's queue goes on by itself; or run"
    return Decision(f"{scope.words} may go on. {how}: recipes run {scope.recipe}")


def stop(engine: Engine, scope: Scope, reason: str = "", by: str = "") -> Decision:
    """Nothing of the scope is sent any more, and what is out is ended at its places.

    `follow_stop` lands what it has answered.
    """
    engine.ledger.controls.decide(ControlKind.STOP, [scope], reason, by)
    heeded = heed(engine, _open_heads(engine, scope))
    words = stop_words(engine, scope)
    return Decision(words, len(heeded.tasks), tuple(heeded.unasked))


def follow_stop(engine: Engine, scope: Scope) -> bool:
    """Lands and books what stopped tasks of the scope answered; whether all of them are at rest."""
    heads = _open_heads(engine, scope)
    if not heads:
        return True
    ids = {head.id for head in heads}
    polled = poll_open(engine, skip={head.id for head in engine.ledger.tasks.heads()} - ids)
    for head in heads:
        seen = polled.get(head.id)
        # What ends with a process of this machine is not polled: it is looked at one by one.
        if seen is None or seen.ended:
            land_stopped(engine, head.id)
    return not any(head.held is None for head in _open_heads(engine, scope))


@dataclass
class _Waiting:
    """What a `now` could bring on, and what stands in its way."""

    todo: list[Scope] = field(default_factory=list[Scope])
    pages: int = 0
    plain: int = 0
    counts: Counter[PageState] = field(default_factory=Counter[PageState])
    halts: list[Control] = field(default_factory=list[Control])


def hurry(engine: Engine, scope: Scope, reason: str = "", by: str = "") -> Decision:
    """An open batch is ended, and what is left of it goes by plain calls, as what was not yet sent.

    Raises `HeldBack` with the reason when nothing waits for it.
    """
    recipe = engine.project.recipe(scope.recipe)
    steps = [
        each for each in recipe.steps if each.provider is not None and scope.step in ("", each.name)
    ]
    if not steps:
        raise HeldBack(_no_plain_calls(engine, scope))
    found = _waiting(engine, scope, steps)
    if not found.todo:
        raise HeldBack(_why_nothing(scope, found))
    engine.ledger.controls.decide(ControlKind.NOW, found.todo, reason, by)
    heads = [
        head
        for head in _open_heads(engine, scope)
        if head.slot and any(each.batch == head.batch for each in found.todo)
    ]
    heeded = heed(engine, heads)
    ending = (
        f"{len(heeded.tasks)} open batches end, and what they have answered lands. "
        if heeded.tasks
        else ""
    )
    return Decision(
        f"{found.pages:,} pages of {scope.words} go now. {ending}The rest goes by plain calls, at "
        "the full price, as soon as a run comes to it: those in Dagster's queue by themselves, or "
        f"run: recipes run {scope.recipe}",
        len(heeded.tasks),
        tuple(heeded.unasked),
    )


def _no_plain_calls(engine: Engine, scope: Scope) -> str:
    """Why nothing of the scope can be hurried, and where its steps go instead."""
    at: dict[str, list[str]] = {}
    for step in engine.project.recipe(scope.recipe).steps:
        if scope.step in ("", step.name) and step.place != LOCAL:
            at.setdefault(step.place, []).append(step.name)
    jobs = [f"{', '.join(names)} goes as jobs at {place}" for place, names in at.items()]
    return (
        f"Nothing of {scope.words} can be hurried: only a step at a provider has plain calls"
        + (f", and {'; '.join(jobs)}, in its queue" if jobs else "")
        + "."
    )


def _waiting(engine: Engine, scope: Scope, steps: list[Step]) -> _Waiting:
    found = _Waiting()
    controls = engine.ledger.controls.all(scope.recipe)
    batched = {(head.batch, head.stage) for head in engine.ledger.tasks.heads() if head.slot}
    for view in _views(engine, scope):
        for step in steps:
            at = view.steps[step.name]
            found.counts.update(at.states.values())
            unsent = at.count(PageState.TODO) + at.count(PageState.WAITING)
            out = at.count(PageState.OPEN)
            if not unsent and out and (view.batch, step.name) not in batched:
                found.plain += out
            elif unsent or out:
                halts = [
                    each
                    for each in controls
                    if each.kind in _HALTS
                    and each.scope.covers(scope.recipe, view.batch, (step.name,))
                ]
                found.halts += halts
                if not halts:
                    found.pages += unsent + out
                    found.todo.append(Scope(scope.recipe, batch=view.batch, step=step.name))
    return found


def _why_nothing(scope: Scope, found: _Waiting) -> str:
    if found.halts:
        return f"Nothing of {scope.words} can be hurried: {halt_words(found.halts[0])}"
    if found.plain:
        return (
            f"Nothing of {scope.words} can be hurried: {found.plain} pages are asked for by plain "
            "calls already."
        )
    pages = sum(found.counts.values())
    held = found.counts[PageState.HELD]
    return (
        f"Nothing of {scope.words} waits: {found.counts[PageState.LANDED]:,} of {pages:,} pages "
        f"have landed"
        + (f" and {held:,} are held; see: recipes held {scope.recipe}" if held else ".")
    )


def _views(engine: Engine, scope: Scope) -> Iterator[BatchView]:
    recipe = engine.project.recipe(scope.recipe)
    for batch, view in iter_views(engine, recipe, scope.folder or None):
        if scope.batch in ("", batch.key) and view.pages:
            yield view


def _open_heads(engine: Engine, scope: Scope) -> list[TaskHead]:
    return [
        head
        for head in engine.ledger.tasks.heads()
        if scope.covers(head.recipe, head.batch, steps_of_stage(engine, head.recipe, head.stage))
    ]
