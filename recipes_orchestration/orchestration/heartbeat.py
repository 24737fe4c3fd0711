"""A run's heartbeat in the ledger: whoever finds the run open can tell whether it is at work."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from ..engine.engine import Engine
from ..errors import RecipesError

__all__ = ["BEAT_EVERY", "Heartbeat", "rests"]

BEAT_EVERY = 10.0

# The owner of a run between two of its ops: its process may be busy with somebody else's asset.
_RESTING = "/between"

_log = logging.getLogger(__name__)


def rests(owner: str) -> bool:
    """Whether the run said that its silence means nothing."""
    return owner.endswith(_RESTING)


class Heartbeat:
    """Says every few seconds, as long as the block lasts, that this process works on the run."""

    def __init__(self, engine: Engine, run_id: str, every: float = BEAT_EVERY) -> None:
        self._engine = engine
        self._run_id = run_id
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._engine.ledger.runs.beat(self._run_id, self._engine.owner)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._beat(self._engine.owner + _RESTING)

    def _go_on(self) -> None:
        while not self._over.wait(self._every):
            self._beat(self._engine.owner)

    def _beat(self, owner: str) -> None:
        try:
            self._engine.ledger.runs.beat(self._run_id, owner)
        except RecipesError as error:  # a ledger that is locked for a while costs no run
            _log.warning("The heartbeat of run %s was not written: %s", self._run_id, error)
