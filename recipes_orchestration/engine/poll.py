"""All open tasks at places elsewhere, asked about at once: what the adopt sensor does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..errors import RecipesError
from ..ledger.tasks import TaskHead, TaskState
from ..places.place import State
from .deadlines import keep_deadlines
from .engine import Engine
from .heeding import heed
from .standing import standings

__all__ = ["Polled", "poll_open"]


@dataclass(frozen=True)
class Polled:
    """An open task and how it stands. `ended`: a run can go on with it now."""

    task: TaskHead
    ended: bool
    words: str


def poll_open(engine: Engine, *, skip: Collection[str] = ()) -> dict[str, Polled]:
    """Every open task that lives on without a process of ours, by its id, but those to skip.

    One call a place, or as few as its API allows. What has ended is written into the ledger, what
    never was is dropped; nothing is landed. What a person stopped meanwhile, or
    whose deadline has passed, is ended.
    """
    heads = [head for head in engine.ledger.tasks.heads() if _lives_on(engine, head)]
    asked = [head for head in heads if head.id not in skip]
    keep_deadlines(engine, asked)
    heed(engine, asked)
    polled: dict[str, Polled] = {}
    ended: dict[str, str] = {}
    for head, standing in zip(asked, _standings(engine, asked), strict=True):
        state, words = standing
        if state is State.LOST:
            engine.ledger.tasks.dropped(head.id, words)
        elif state is State.ENDED and head.state is not TaskState.ended:
            ended[head.id] = words
        polled[head.id] = Polled(head, state is not State.RUNNING, words)
    engine.ledger.tasks.ended_many(ended)
    return polled


def _standings(engine: Engine, heads: list[TaskHead]) -> list[tuple[State, str]]:
    stand = standings(engine, heads)
    return [(stand[head.id].state, stand[head.id].words) for head in heads]


def _lives_on(engine: Engine, head: TaskHead) -> bool:
    try:
        return not engine.place(head.place).ends_here(head.remote_id)
    except RecipesError:  # a place that cannot be opened here; its words are told when it is asked
        return True
