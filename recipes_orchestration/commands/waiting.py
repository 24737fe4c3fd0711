"""Waiting in the foreground for work that goes on elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..engine.advance import Seen
from ..engine.engine import Engine
from ..engine.poll import poll_open
from ..errors import HeldBack, PlaceError
from ..ledger.controls import ControlKind
from ..ledger.pages import BatchRow
from ..stages import Stage
from .interrupts import Stopping
from .output import Output, count

__all__ = ["Waiting"]

LONGEST_PAUSE = 60.0


class Waiting:
    """The batches of one stage that wait for its place, and what was said about it."""

    def __init__(self, engine: Engine, stage: Stage, output: Output) -> None:
        self._engine = engine
        self._stage = stage
        self._output = output
        self._seen: dict[str, Seen] = {}
        self._said = ""

    def note(self, batch: str, seen: Seen) -> bool:
        """Takes up why a batch waits; always True, so that the next one is looked at.

        Raises `HeldBack` for one that only waits for a person: the others are not to wait for it.
        """
        if seen.person and not seen.remote:
            raise HeldBack(seen.waiting)
        self._seen[batch] = seen
        return True

    def until_some_can_go_on(
        self, batches: Sequence[BatchRow], stopping: Stopping
    ) -> list[BatchRow]:
        """Those of the batches that a further look may bring on, once there are any.

        The place is asked once for all of them, less and less often. Raises `PlaceError` when it
        is paused until a person resumes it and nothing is open there.
        """
        pause = self._engine.project.limits.poll_seconds
        while batches:
            self._say(len(batches))
            self._raise_if_paused(batches)
            until = time.monotonic() + pause
            while time.monotonic() < until:
                stopping.raise_if_asked()
                time.sleep(min(0.25, max(0.0, until - time.monotonic())))
            if ready := self._ready(batches):
                return ready
            pause = min(LONGEST_PAUSE, pause * 1.5)
        return []

    def _ready(self, batches: Sequence[BatchRow]) -> list[BatchRow]:
        polled = poll_open(self._engine)
        going_on = {id for id, each in polled.items() if not each.ended}
        slots = self._engine.slots(self._stage.place)
        ready: list[BatchRow] = []
        for batch in batches:
            seen = self._seen[batch.key]
            if seen.waiting is not None and not seen.remote:
                # As many as there are slots, in their order.
                if self._is_now(batch.key):
                    ready.append(batch)
                    continue
                if self._engine.paused(self._stage.place) or slots == 0:
                    continue
                slots = None if slots is None else slots - 1
                ready.append(batch)
            elif all(task.id not in going_on for task in seen.remote):
                ready.append(batch)
        return ready

    def _is_now(self, batch: str) -> bool:
        """Whether a person wants by plain calls, which take no slot, what waits for one."""
        controls = self._engine.ledger.controls.of_batch(self._stage.recipe.name, batch)
        steps = {"", *(step.name for step in self._stage.steps)}
        return any(each.kind is ControlKind.NOW and each.scope.step in steps for each in controls)

    def _raise_if_paused(self, batches: Sequence[BatchRow]) -> None:
        pause = self._engine.ledger.pauses.of(self._stage.place)
        if pause is None or pause.until is not None:
            return
        if all(not self._seen[batch.key].remote for batch in batches):
            raise PlaceError(self._engine.paused(self._stage.place) or pause.words)

    def _say(self, batches: int) -> None:
        """One line each time that something about the wait is another."""
        remote = [task for seen in self._seen.values() for task in seen.remote]
        names = ", ".join(sorted({task.remote_id or task.name for task in remote})[:3])
        words = f"{count(batches, 'page batch', 'page batches')} wait for {self._stage.place}"
        if names:
            words += f": {names}" + (" and others" if len(remote) > 3 else "")
        waiting = next((seen.waiting for seen in self._seen.values() if seen.waiting), None)
        if waiting is not None:
            words += f". {waiting}"
        if words != self._said:
            self._said = words
            self._output.note(f"{words.rstrip('.')}. Ctrl-C leaves them open; run again to go on.")
