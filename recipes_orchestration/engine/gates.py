"""The gates: what every send passes, read anew each time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..errors import NoConsent
from ..ledger.controls import Control, ControlKind
from ..stages import Stage
from .consent import missing_consent
from .engine import Engine
from .look import BatchView
from .preparing import Work

__all__ = ["Gate", "gate", "halt_words"]

# Which of several decisions is named.
_ORDER = (ControlKind.STOP, ControlKind.CANCEL, ControlKind.PAUSE, ControlKind.NOW)


@dataclass(frozen=True)
class Gate:
    """What may be sent of the work, and why the rest is not.

    `now`: it goes by plain calls. `words` is None when all may go. `person`: it is a person who
    holds it back, and `stopped`: by a stop, which nothing but a person ends.
    """

    work: Work
    now: bool = False
    words: str | None = None
    person: bool = False
    stopped: bool = False


def gate(engine: Engine, stage: Stage, view: BatchView, work: Work, now: bool) -> Gate:
    """What of the work may be sent at this moment. `now`: a person waits for it.

    A step that is stopped or paused takes those with it that need it. Raises `NoConsent` when
    pages may not leave for the stage's place.
    """
    yes = engine.pages_may_leave
    if words := missing_consent(engine.project, view.recipe, stage.place, request=yes):
        raise NoConsent(words)
    controls = engine.ledger.controls.of_batch(view.recipe.name, view.batch)
    halts = [each for each in controls if each.kind is not ControlKind.NOW]
    halted = _halted(halts, _steps_of(work)) if halts else {}
    left = _without(view, work, halted) if halted else work
    if not left:
        first = min(halted.values(), key=lambda each: _ORDER.index(each.kind))
        stopped = first.kind.stops
        return Gate({}, now, halt_words(first), person=True, stopped=stopped)
    if paused := engine.paused(stage.place):
        return Gate({}, now, paused)
    hurries = [each for each in controls if each.kind is ControlKind.NOW]
    hurried = any(not each.scope.step or each.scope.step in _steps_of(left) for each in hurries)
    return Gate(left, now or hurried)


def _steps_of(work: Work) -> set[str]:
    return {step for chain in set(work.values()) for step in chain}


def halt_words(control: Control) -> str:
    """Why nothing is sent, and how it goes on."""
    what = "stopped" if control.kind.stops else "paused"
    by = f" by {control.by}" if control.by else ""
    reason = f": {control.words}" if control.words else ""
    return (
        f"{control.scope.words} was {what}{by} at {control.since:%Y-%m-%d %H:%M} UTC{reason}. "
        + ("To go on, launch it again, or" if control.kind is ControlKind.CANCEL else "To go on,")
        + f" run: recipes resume {control.scope.recipe}"
    )


def _halted(halts: Collection[Control], steps: Collection[str]) -> dict[str, Control]:
    """The steps that are held back by themselves, each by the control that does it."""
    found: dict[str, Control] = {}
    for control in halts:
        for step in steps:
            at_it = control.scope.step in ("", step)
            kind = found[step].kind if step in found else ControlKind.NOW
            if at_it and _ORDER.index(control.kind) < _ORDER.index(kind):
                found[step] = control
    return found


def _without(view: BatchView, work: Work, halted: Collection[str]) -> Work:
    """The work without these steps, and on each page without those that need them."""
    left: Work = {}
    for page_id, chain in work.items():
        kept: list[str] = []
        for step in chain:
            needs = set(view.steps[step].step.needs) & set(chain)
            if step not in halted and needs <= set(kept):
                kept.append(step)
        if kept:
            left[page_id] = tuple(kept)
    return left
