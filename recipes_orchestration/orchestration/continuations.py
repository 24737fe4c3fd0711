"""Continuations: the run that goes on where another one left off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
from dagster._core.storage.tags import CODE_LOCATION_TAG, PRIORITY_TAG

from ..project import Project
from ..stages import stages_of
from .events import step_key
from .run_tags import (
    AWAIT,
    CANCELLED,
    CAP_USD,
    CONTINUES,
    DEATHS,
    DEFERRING,
    FAILURES,
    OPEN,
    PARENT_RUN_ID_TAG,
    PARTITION_NAME_TAG,
    PLACE,
    RIVALS,
    ROOT_RUN_ID_TAG,
    SINCE,
    STOPPED,
    TASK,
    WAITING,
)

__all__ = ["Left", "Work", "Works", "continuation", "left_of"]

ASSET_JOB = "__ASSET_JOB"

# What belongs to one run alone and must not be told of the next one.
OWN_TAGS = frozenset(
    {
        PARTITION_NAME_TAG,
        *("dagster/run_key", "dagster/sensor_name", "dagster/schedule_name", "dagster/tick"),
        *("dagster/code_location", "dagster/will_retry", "dagster/auto_retry_run_id"),
        *("dagster/retry_number", "dagster/is_resume_retry", "dagster/is_asset_resume_retry"),
        *("dagster/failure_reason", "dagster/step_selection", "dagster/solid_selection"),
        *(CANCELLED, CAP_USD, DEATHS, DEFERRING, FAILURES, PLACE, RIVALS, SINCE, STOPPED),
        *(TASK, WAITING),
    }
)


@dataclass(frozen=True)
class Work:
    """A stage of a batch: what tasks belong to and runs work on."""

    recipe: str
    stage: str
    batch: str


class Works:
    """Which stages of which batch a run works on.

    `location` is the code location of the project; another one's recipes may have equal names.
    """

    def __init__(
        self, project: Project, instance: dg.DagsterInstance, location: str | None = None
    ) -> None:
        self._instance = instance
        self._location = location
        self._stages = {
            step_key(recipe.name, step.name): (recipe.name, stage.name)
            for recipe in project.recipes.values()
            for stage in stages_of(recipe)
            for step in stage.steps
        }
        self.steps = {
            (recipe.name, stage.name): tuple(step.name for step in stage.steps)
            for recipe in project.recipes.values()
            for stage in stages_of(recipe)
        }

    def is_ours(self, run: dg.DagsterRun) -> bool:
        """Whether the run is not known to be another code location's."""
        elsewhere = run.tags.get(CODE_LOCATION_TAG, self._location) != self._location
        return self._location is None or not elsewhere

    def of(self, run: dg.DagsterRun) -> set[Work]:
        """Empty for a run that has nothing to do with the project's recipes."""
        batch = run.tags.get(PARTITION_NAME_TAG)
        if batch is None or not self.is_ours(run):
            return set()
        keys = run.asset_selection
        if keys is None:
            keys = planned_assets(self._instance, run)
        return {Work(*self._stages[key], batch) for key in keys if key in self._stages}

    def steps_of(self, run: dg.DagsterRun) -> dict[str, set[str]]:
        """By recipe, the steps that the run was to do."""
        keys = run.asset_selection
        if keys is None:
            keys = planned_assets(self._instance, run)
        found: dict[str, set[str]] = {}
        for key in keys:
            if key in self._stages:
                found.setdefault(key.path[0], set()).add(key.path[1])
        return found


@dataclass(frozen=True)
class Left:
    """What a run has not done of what it was to do. `checks` None: all of these assets."""

    assets: tuple[dg.AssetKey, ...]
    checks: tuple[dg.AssetCheckKey, ...] | None


def planned_assets(instance: dg.DagsterInstance, run: dg.DagsterRun) -> set[dg.AssetKey]:
    """The assets that the run was to materialize, from its events."""
    return _assets_of(instance, run, dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED)


def left_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Left:
    """The run's assets without those that it materialized, with their checks."""
    # A run that was executed again from a failure has fewer to do than it selected.
    planned = planned_assets(instance, run) or run.asset_selection or ()
    done = _assets_of(instance, run, dg.DagsterEventType.ASSET_MATERIALIZATION)
    assets = tuple(sorted(set(planned) - done))
    checks = run.asset_check_selection
    if checks is None:
        return Left(assets, None)
    return Left(assets, tuple(sorted(key for key in checks if key.asset_key in assets)))


def continuation(
    run: dg.DagsterRun, left: Left, tags: Mapping[str, str], *, state: str = OPEN
) -> dg.RunRequest:
    """The request for the run that does what is left of `run`; asked for again, it is the same."""
    kept = {
        name: value
        for name, value in run.tags.items()
        if name not in OWN_TAGS and not name.startswith(".dagster/")
    }
    return dg.RunRequest(
        run_key=f"continue/{run.run_id}",
        run_config=run.run_config if run.job_name.startswith(ASSET_JOB) else {},
        asset_selection=list(left.assets),
        asset_check_keys=None if left.checks is None else list(left.checks),
        partition_key=run.tags[PARTITION_NAME_TAG],
        tags={
            **kept,
            # Landing frees a slot: it goes before the runs that would only wait for one.
            PRIORITY_TAG: str(_priority(run) + (AWAIT not in run.tags)),
            **tags,
            AWAIT: state,
            CONTINUES: run.run_id,
            PARENT_RUN_ID_TAG: run.run_id,
            ROOT_RUN_ID_TAG: run.tags.get(ROOT_RUN_ID_TAG, run.run_id),
        },
    )


def _priority(run: dg.DagsterRun) -> int:
    try:
        return int(run.tags.get(PRIORITY_TAG, "0"))
    except ValueError:
        return 0


def _assets_of(
    instance: dg.DagsterInstance, run: dg.DagsterRun, kind: dg.DagsterEventType
) -> set[dg.AssetKey]:
    keys: set[dg.AssetKey] = set()
    for entry in instance.all_logs(run.run_id, of_type=kind):
        event = entry.dagster_event
        if event is not None and event.asset_key is not None:
            keys.add(event.asset_key)
    return keys
