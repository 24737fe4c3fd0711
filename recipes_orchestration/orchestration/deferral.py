"""Deferral: a run whose tasks are open elsewhere hands over to a continuation and ends.

The adopt sensor queues the continuation. A run that sees it in the queue ends; one that does not
see it goes on by itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Protocol

import dagster as dg

from ..engine.advance import Seen
from .run_tags import (
    AWAIT,
    CAP_USD,
    DEFERRING,
    ENDED,
    FOR_PERSON,
    FOR_SLOT,
    FOR_TASKS,
    NO,
    OPEN,
    PARENT_RUN_ID_TAG,
    PLACE,
    RIVALS,
    SINCE,
    TASK,
    WAITING,
    YES,
    listed,
    shown_ids,
)

__all__ = ["EVERY_VARIABLE", "PATIENCE", "Deferral", "adopt_every", "may_be_deferred"]

EVERY_VARIABLE = "RECIPES_ADOPT_SECONDS"
EVERY_SECONDS = 30
# A tick may be late on a busy machine, and takes a while itself.
PATIENCE = 45.0
# After so long, a run that found no sensor looks for one again.
AGAIN = 180.0
LOOK_EVERY = 0.5


def adopt_every() -> int:
    """Seconds between two ticks of the adopt sensor."""
    given = os.environ.get(EVERY_VARIABLE, "")
    return max(1, int(given)) if given.isdigit() else EVERY_SECONDS


def may_be_deferred(instance: dg.DagsterInstance) -> bool:
    """Whether a run with `recipes/await=open` would stay in this instance's queue."""
    queue = instance.get_concurrency_config().run_queue_config
    if queue is None:
        return False
    return any(
        limit["key"] == AWAIT and limit.get("value") == OPEN and limit["limit"] == 0
        for limit in queue.tag_concurrency_limits or ()
    )


class _Log(Protocol):
    def info(self, msg: object, *args: object) -> None: ...


class Deferral:
    """Decides, whenever only tasks elsewhere are open, whether the run ends there.

    Called by the engine after each look; True ends the run's part. Blocks while it waits for the
    sensor, at most a little longer than its interval. `inline` is how many seconds to wait for
    the tasks themselves first.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        run: dg.DagsterRun,
        place: str,
        batch: str,
        log: _Log,
        *,
        inline: float,
        every: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._instance = instance
        self._run = run
        self._place = place
        self._batch = batch
        self._log = log
        self._inline = inline
        self._every = adopt_every() if every is None else every
        self._sleep = sleep
        self._since: float | None = None
        self._told = ""
        self._tagged: Mapping[str, str] = {}
        self._deferrable: bool | None = None
        self._next_try = 0.0

    def __call__(self, seen: Seen) -> bool:
        """Whether the run may end: its continuation is in the queue."""
        if self._since is None:
            self._since = time.monotonic()
        self._tell(seen)
        if not self._can_defer():
            return False
        # A slot or a pause does not end by itself within a minute; a task may.
        waited = time.monotonic() - self._since
        if seen.remote and not seen.waiting and waited < self._inline:
            return False
        if time.monotonic() < self._next_try:
            return self._is_queued()  # a busy daemon may have been late
        return self._hand_over()

    def _tell(self, seen: Seen) -> None:
        """Says in the run's log, and by its tags, what it waits for."""
        ids = [task.remote_id or task.name for task in seen.remote]
        if seen.waiting is not None:
            words = f"Batch {self._batch}: {seen.waiting}."
        else:
            words = f"Batch {self._batch} waits for {shown_ids(ids)} at {self._place}."
        if words == self._told:
            return
        self._told = words
        self._log.info(words)
        why = FOR_TASKS if seen.waiting is None else FOR_PERSON if seen.person else FOR_SLOT
        tags = {WAITING: why, PLACE: self._place}
        if ids:
            tags[TASK] = shown_ids(ids)
        if rivals := [task.id for task in seen.remote if task.batch != self._batch]:
            tags[RIVALS] = listed(rivals)
        if seen.over is not None:
            tags[CAP_USD] = str(seen.over.usd)
        if seen.waiting is not None:
            tags[SINCE] = self._run.tags.get(SINCE) or datetime.now(UTC).isoformat()
        self._tag(tags)

    def _can_defer(self) -> bool:
        if self._deferrable is None:
            self._deferrable = may_be_deferred(self._instance)
            if not self._deferrable:
                self._log.info(
                    "The run goes on asking by itself: dagster.yaml has no limit of 0 for runs "
                    f"tagged {AWAIT}={OPEN}, so none can wait in the queue in its place."
                )
        return self._deferrable

    def _hand_over(self) -> bool:
        """Whether the continuation is queued, after waiting for it."""
        self._tag({DEFERRING: YES})
        until = time.monotonic() + self._every + PATIENCE
        while True:
            if self._is_queued():
                return True
            if time.monotonic() > until:
                break
            self._sleep(LOOK_EVERY)
        self._tag({DEFERRING: NO})
        self._next_try = time.monotonic() + AGAIN
        self._log.info(
            "The run goes on asking by itself: the sensor recipes_adopt queued no continuation "
            f"within {self._every + PATIENCE:.0f} s. See in the UI that it is running."
        )
        return False

    def _is_queued(self) -> bool:
        found = self._instance.get_runs(
            dg.RunsFilter(tags={PARENT_RUN_ID_TAG: self._run.run_id, AWAIT: [OPEN, ENDED]}),
            limit=1,
        )
        if not found:
            return False
        self._log.info(
            f"Batch {self._batch} goes on in run {found[0].run_id}, which waits in the queue; "
            "this one ends."
        )
        return True

    def _tag(self, tags: Mapping[str, str]) -> None:
        fresh = {name: value for name, value in tags.items() if self._tagged.get(name) != value}
        if fresh:
            self._instance.add_run_tags(self._run.run_id, fresh)
            self._tagged = {**self._tagged, **fresh}
