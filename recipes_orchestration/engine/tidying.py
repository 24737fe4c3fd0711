"""Tidy: folders at places go once their tasks are over, whoever was killed meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from ..errors import ProviderError, RecipesError
from ..ledger.leftovers import Leftover
from ..places.processes import process_lives
from ..places.task_folders.far_folders import FarFolders, Over
from .engine import Engine

__all__ = ["tidy"]

TRIED_AGAIN_AFTER = 600.0
"""What could not be removed is tried again so much later, in seconds, by whichever process."""


def tidy(engine: Engine, place: str | None = None, *, most: int = 500) -> None:
    """Removes what lies at a place, or at all of them, of tasks that are over.

    It is written down first who removes what, and last that it is gone, so that a kill at any
    moment leaves it to the next look. What cannot be removed now is left to a later one: nothing
    depends on it.
    """
    by_place: dict[str, list[Leftover]] = defaultdict(list)
    for leftover in engine.ledger.leftovers.left(place, most):
        by_place[leftover.place].append(leftover)
    for name, leftovers in by_place.items():
        due = [each for each in leftovers if _is_due(each)]
        if due:  # what could not be removed before goes with them
            ours = [each for each in leftovers if each.going and each.owner == engine.owner]
            _clear(engine, name, {each.id: each for each in [*due, *ours]}.values())


def _is_due(leftover: Leftover) -> bool:
    """Whether nobody is at it, or has just tried."""
    if not leftover.going or process_lives(leftover.owner.partition("/")[0]) is False:
        return True
    return (datetime.now(UTC) - leftover.since).total_seconds() > TRIED_AGAIN_AFTER


def _clear(engine: Engine, name: str, leftovers: Iterable[Leftover]) -> None:
    try:
        place = engine.place(name)
    except RecipesError:  # such as a place that the project does not name any more
        return
    taken = {each.name: each for each in engine.ledger.leftovers.take(leftovers, engine.owner)}
    if not taken:
        return
    if not isinstance(place, FarFolders):
        engine.ledger.leftovers.gone([each.id for each in taken.values()])
        return
    gone: list[str] = []
    try:
        for cleared in place.clear([Over(each.name, each.group) for each in taken.values()]):
            gone.append(taken[cleared].id)
    except ProviderError:
        pass
    finally:
        engine.ledger.leftovers.gone(gone)
