"""What a step at a provider was asked and answered before, from the bills of its last tasks."""

from __future__ import annotations

from collections.abc import Sequence

from ..ledger.bookings import Past
from ..runner.work import FailureKind, Usual
from ..stages import Stage
from .engine import Engine
from .look import BatchView

__all__ = ["usual_of"]

# The sheet's bounds of the same number.
_LEAST, _MOST = 0.2, 5.0


def usual_of(engine: Engine, stage: Stage, view: BatchView) -> Usual:
    """How long answers were, and how far our count of questions was from the provider's.

    Of the step as it is, where any task of it was billed; of an earlier form of it only how long
    the answers were.
    """
    name = stage.steps[0].name
    last = engine.ledger.bookings.last(stage.recipe.name, name, stage.place)
    fingerprint = view.steps[name].fingerprint
    current = [past for past in last if past.fingerprints.get(name) == fingerprint]
    return Usual(_tokens_out(current or last), _factor(current))


def _tokens_out(bills: Sequence[Past]) -> float | None:
    answers = sum(map(_answers, bills))
    return sum(past.tokens_out for past in bills) / answers if answers else None


def _factor(bills: Sequence[Past]) -> float:
    ours = theirs = 0.0
    for past in bills:
        counted = (past.sent or {}).get("expected")
        answers = _answers(past)
        if counted and answers:
            ours += counted["tokens_in"] / counted["calls"] * answers
            theirs += past.tokens_in
    return min(_MOST, max(_LEAST, theirs / ours)) if ours and theirs else 1.0


def _answers(past: Past) -> int:
    """How many answers were billed."""
    return past.lines.get("landed", 0) + past.lines.get(FailureKind.ANSWER.value, 0)
