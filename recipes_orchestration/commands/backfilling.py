"""The work of `recipes backfill`: the UI's own backfill, launched from here and followed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ..engine.consent import RUN_TAG
from ..errors import DagsterError, NotFound
from ..pages.naming import folder_order, shown, split_batch_key
from ..project import load_project
from .consenting import refuse_without_consent
from .dagster_api import BackfillState, DagsterApi
from .exits import ALL_RIGHT, NOT_COMPLETE
from .interrupts import stopping_in_order
from .opening import steps_named
from .output import Output, count

__all__ = ["Target", "run_backfill"]

_POLL_SECONDS = 2.0
# A webserver that restarts must not end the following of a backfill of days.
_PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Target:
    """What to backfill: a recipe, or a part of it. Empty means all.

    `pages_may_leave`: the person who launches it says so.
    """

    recipe: str
    folder: str | None = None
    steps: tuple[str, ...] = ()
    missing_only: bool = False
    pages_may_leave: bool = False


def run_backfill(
    project: Path | None, target: Target, *, url: str, wait: bool, as_json: bool
) -> None:
    """Launches it, follows it to its end, and ends with 0 when all of it was materialized.

    Stopped, the following ends and the backfill goes on in Dagster.
    """
    output = Output(as_json=as_json)
    loaded = load_project(project)
    recipe = loaded.recipe(target.recipe)
    steps = steps_named(recipe, target.steps)
    refuse_without_consent(loaded, recipe, steps, request=target.pages_may_leave)
    api = DagsterApi(url)
    wanted = _partitions(api, target, steps)
    document: dict[str, Any] = {
        "recipe": recipe.name,
        "folder": target.folder,
        "missing_only": target.missing_only,
        "steps": {step: len(keys) for step, keys in wanted.items()},
    }
    if not wanted:
        output.line(f"{recipe.name}: nothing is missing, so nothing was launched.")
        output.document({**document, "backfill": None, "status": None, "succeeded": True})
        return
    title = f"{recipe.name}{' ' + shown(target.folder) if target.folder else ''}"
    tags = {RUN_TAG: "yes"} if target.pages_may_leave else {}
    backfill_id = api.launch(recipe.name, wanted, title[:100], tags)
    where = f"{api.url}/runs/b/{backfill_id}"
    partitions = len({key for keys in wanted.values() for key in keys})
    output.line(
        f"Backfill {backfill_id} of {count(partitions, 'batch', 'batches')} at "
        f"{', '.join(wanted)}: {where}"
    )
    document |= {"backfill": backfill_id, "url": where, "batches": partitions}
    if not wait:
        output.document({**document, "status": "REQUESTED", "succeeded": None})
        return
    with stopping_in_order(lambda _: output.note(f"It goes on in Dagster: {where}")):
        state = _follow(api, backfill_id, output, sum(len(keys) for keys in wanted.values()))
    _tell(output, document, state)
    raise typer.Exit(ALL_RIGHT if state.succeeded else NOT_COMPLETE)


def _partitions(api: DagsterApi, target: Target, steps: list[str]) -> dict[str, list[str]]:
    """By step the partitions to backfill, in the order of folders; steps without any left out."""
    known = api.partitions(target.recipe, steps)
    absent = [step for step in steps if step not in known]
    if absent:
        raise DagsterError(
            f"The Dagster at {api.url} has no asset {target.recipe}/{absent[0]}: it runs another "
            "project, or its code location could not be loaded. See Deployment in its UI."
        )
    everything = {key for keys, _ in known.values() for key in keys}
    inside = {key for key in everything if _is_inside(key, target.folder)}
    if not inside:
        where = "" if target.folder is None else f" in folder {shown(target.folder)}"
        raise NotFound(
            f"Dagster knows no batch of {target.recipe}{where}. Find the pages first: "
            "recipes discover"
        )
    wanted = {
        step: sorted(
            (key for key in inside if not (target.missing_only and key in known[step][1])),
            key=_order,
        )
        for step in steps
    }
    return {step: keys for step, keys in wanted.items() if keys}


def _is_inside(key: str, folder: str | None) -> bool:
    if folder is None or folder == ".":
        return True
    try:
        of_key, _ = split_batch_key(key)
    except ValueError:  # a partition that somebody added by hand
        return False
    return of_key == folder or of_key.startswith(f"{folder}/")


def _order(key: str) -> tuple[Any, int, str]:
    try:
        folder, number = split_batch_key(key)
    except ValueError:
        return (), 0, key
    return folder_order(folder), number, key


def _follow(api: DagsterApi, backfill_id: str, output: Output, total: int) -> BackfillState:
    answered = time.monotonic()
    said = (0, 0)
    with output.progress() as progress:
        bar = progress.add_task("backfill", total=total, unit="materialized")
        while True:
            try:
                state = api.backfill(backfill_id)
            except DagsterError:
                if time.monotonic() - answered > _PATIENCE_SECONDS:
                    raise
                time.sleep(_POLL_SECONDS)
                continue
            answered = time.monotonic()
            done = sum(step.materialized for step in state.steps.values())
            failed = sum(step.failed for step in state.steps.values())
            targeted = sum(step.targeted for step in state.steps.values())
            words = f"backfill, {failed:,} failed" if failed else "backfill"
            progress.update(bar, completed=done, total=targeted or total, description=words)
            if not output.live and (done, failed) != said:
                said = (done, failed)
                output.note(f"{done:,} of {targeted or total:,} materialized, {failed:,} failed")
            if state.ended:
                return state
            time.sleep(_POLL_SECONDS)


def _tell(output: Output, document: dict[str, Any], state: BackfillState) -> None:
    output.table(
        ["step", "batches", "materialized", "failed"],
        [
            [name, f"{step.targeted:,}", f"{step.materialized:,}", f"{step.failed:,}"]
            for name, step in state.steps.items()
        ],
    )
    if state.succeeded:
        output.line("The backfill ended well.")
    else:
        why = f": {shown(state.error)}" if state.error else ""
        output.note(f"The backfill ended as {state.status}{why}. Its runs say more: recipes held")
    output.document(
        {
            **document,
            "status": state.status,
            "succeeded": state.succeeded,
            "error": state.error,
            "counts": {
                name: {
                    "targeted": step.targeted,
                    "materialized": step.materialized,
                    "failed": step.failed,
                }
                for name, step in state.steps.items()
            },
        }
    )
