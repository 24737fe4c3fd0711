"""Stop: tasks are ended at their places and followed, and what they answered lands."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import OverCap, ProviderError
from ..ledger.tasks import OPEN_STATES, TaskHead, TaskRow
from ..places.place import State
from .adopt import close, drop_failed, land
from .engine import Engine
from .heeding import BY_STOP
from .standing import standings

__all__ = ["STOPPED", "land_stopped", "stop_tasks"]

STOPPED = BY_STOP
"""Why a task's end was asked for when a person stopped it."""


def stop_tasks(engine: Engine, tasks: Iterable[TaskHead | TaskRow]) -> list[str]:
    """Asks the places to end tasks; gives words for each that could not be asked.

    Written down first, so that a kill in between leaves a task whose end is asked for again.
    """
    unasked: list[str] = []
    for task in tasks:
        engine.ledger.tasks.stopped(task.id, STOPPED)
        if task.remote_id is None:
            continue
        try:
            engine.place(task.place).cancel(task.remote_id)
        except ProviderError as error:
            unasked.append(f"{task.remote_id} at {task.place} could not be ended: {error}")
    return unasked


def land_stopped(engine: Engine, task_id: str) -> tuple[bool, int]:
    """Follows a stopped task: whether it is at rest now, and how many rows landed.

    Nothing is sent again. A task that its place goes on with is asked to end once more.
    """
    task = engine.ledger.tasks.get(task_id)
    if task is None or task.held or task.state not in OPEN_STATES:
        return True, 0
    standing = standings(engine, [task])[task.id]
    if standing.state is State.LOST:
        engine.ledger.tasks.dropped(task.id, standing.words)
        return True, 0
    task = engine.ledger.tasks.get(task_id)
    if task is None:
        return True, 0
    if standing.state is State.RUNNING:
        stop_tasks(engine, [task])
        return False, 0
    if standing.state is State.FAILED:
        drop_failed(engine, task, standing.words)
        return True, 0
    try:
        landed = land(engine, task)
    except (OverCap, ProviderError):
        return False, 0
    close(engine, task)
    return True, landed
