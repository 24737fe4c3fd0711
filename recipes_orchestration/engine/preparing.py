"""What can be sent, and tasks of it written down with their claims before their place is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..ledger.tasks import NewTask, NoSlot, TaskRow
from ..places.place import Package
from ..places.task_folders.far_folders import FarFolders
from ..recipe import canonical_json, digest
from ..stages import Stage
from .engine import Engine
from .look import BatchView, PageState
from .spending import reserving
from .work import sent_record

__all__ = ["NO_SLOT", "Work", "keys_of", "plan_work", "prepare", "steps_of"]

Work = dict[str, tuple[str, ...]]
"""The steps to be run on each page, in order: page_id to step names."""

NO_SLOT: Final[list[TaskRow]] = []
"""Given, itself, when the slots of the place are taken."""


def plan_work(view: BatchView, steps: tuple[str, ...]) -> Work:
    """The steps that can be run now on each page, in order: page_id to step names. Pure.

    A step that waits for another one of the same list rides behind it.
    """
    if len(steps) == 1:
        states = view.steps[steps[0]].states
        return {page_id: steps for page_id, state in states.items() if state is PageState.TODO}
    work: Work = {}
    for page_id in view.pages:
        chain: list[str] = []
        for step in steps:
            state = view.steps[step].states[page_id]
            if state is PageState.TODO or (
                state is PageState.WAITING
                and all(
                    need in chain or view.steps[need].states[page_id] is PageState.LANDED
                    for need in view.steps[step].step.needs
                )
            ):
                chain.append(step)
        if chain:
            work[page_id] = tuple(chain)
    return work


def prepare(
    engine: Engine,
    stage: Stage,
    view: BatchView,
    works: Sequence[Work],
    packages: Sequence[Package],
) -> list[TaskRow] | None:
    """The tasks of a group that is sent by one call, all written or none.

    None when a rival has some of the keys or the names; `NO_SLOT` when no slot is free. Raises
    `OverCap` when they may cost more than there is left to spend.
    """
    attempt = engine.ledger.tasks.last_attempt(view.recipe.name, stage.name, view.batch) + 1
    keys = [sorted(keys_of(view, work)) for work in works]
    array, names = _names(stage, view, keys, attempt)
    folders = isinstance(engine.place(stage.place), FarFolders)
    new = [
        _new_task(name, view, work, claims, package, folder=folders and bool(package.pages))
        for name, work, claims, package in zip(names, works, keys, packages, strict=True)
    ]
    try:
        return engine.ledger.tasks.prepare_all(
            new,
            recipe=view.recipe.name,
            stage=stage.name,
            source=view.source,
            batch=view.batch,
            place=stage.place,
            attempt=attempt,
            owner=engine.owner,
            slot=packages[0].slot,
            slots=engine.place(stage.place).max_open,
            array=array,
            within=reserving(engine, stage, packages),
        )
    except NoSlot:
        return NO_SLOT


def steps_of(view: BatchView, work: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The steps of the work, in the order of the recipe."""
    chains = set(work.values())
    return tuple(step for step in view.steps if any(step in chain for chain in chains))


def _new_task(
    name: str, view: BatchView, work: Work, claims: list[str], package: Package, *, folder: bool
) -> NewTask:
    steps = steps_of(view, work)
    return NewTask(
        name=name,
        fingerprints={step: view.steps[step].fingerprint for step in steps},
        pages=tuple([(page_id, view.pages[page_id].sha256) for page_id in work]),
        claims=claims,
        sent=sent_record(view, steps, work, package),
        calls=package.calls,
        folder=folder,
        estimate_usd=None if package.expected is None else package.expected.usd,
    )


def keys_of(view: BatchView, work: Work) -> set[str]:
    """The keys of the results that the work will give."""
    keys = {step: view.steps[step].keys for step in steps_of(view, work)}
    return {keys[step][page_id] for page_id, chain in work.items() for step in chain}


def _names(
    stage: Stage, view: BatchView, keys: Sequence[list[str]], attempt: int
) -> tuple[str | None, list[str]]:
    """Names tasks by what they will do, so that two processes that plan alike name them alike.

    The name of the group, None for a task alone, and those of its tasks; see `array_of`.
    """
    parts = [view.recipe.name, stage.name, view.source, view.batch]
    if len(keys) == 1:
        return None, [f"{stage.name}-{digest(canonical_json([*parts, keys[0], attempt]))}"]
    array = f"{stage.name}-{digest(canonical_json([*parts, keys, attempt]))}"
    return array, [f"{array}_{index}" for index in range(len(keys))]
