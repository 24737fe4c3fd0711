"""What jobs of Hugging Face gave: fetched from the store, and read against what was sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import ProviderError
from ...runner.hub_task import ENDED, TIME_IS_OVER
from ...runner.task_folder import OUT, OUTCOME, PROGRESS, RESULTS
from ...runner.work import Failure, FailureKind, Outcome
from ..job_costs import LANDED, JobCost
from ..place import Chunk, Message, Report, Sent
from ..task_folders.batch_folder import own_folder
from ..task_folders.returned import Expected, read_returned
from ..task_folders.returned_report import MOST_OUTCOME_BYTES, told_of
from .ends import End
from .orders import TaskPlace
from .store import Store

__all__ = ["HfResults", "Written"]

MAX_RESULTS_BYTES = 64 * 1024**3
"""Of one task's results: more than its pages can have, less than a disk."""


@dataclass(frozen=True)
class Written:
    """What a task left. `failure`: its runner says that it cannot be done as a whole."""

    anything: bool
    failure: str | None


class HfResults:
    """Results of tasks in a store; `root` is where the batch folders lie here."""

    def __init__(self, store: Store, root: Path) -> None:
        self._store = store
        self._root = root
        self._reports: dict[str, Report] = {}

    def written(self, at: TaskPlace) -> Written:
        """Whether the task wrote anything, and whether it says that it cannot be done."""
        there = self._store.sizes(f"{at.folder}/{OUT}")
        failure = self._failure(at) if OUTCOME in there else None
        has_outcome = OUTCOME in there and failure is None
        return Written(has_outcome or there.get(RESULTS, 0) > 0, failure)

    def _failure(self, at: TaskPlace) -> str | None:
        with TemporaryDirectory(prefix="recipes-") as folder:
            out = f"{at.folder}/{OUT}"
            try:
                fetched = self._store.fetch(out, [OUTCOME], Path(folder), MOST_OUTCOME_BYTES)
                return told_of(fetched.files[OUTCOME].read_bytes(), None).failure
            except (ProviderError, KeyError, ValueError, OSError):
                return None

    def chunks(self, sent: Sent, at: TaskPlace, end: End, cost: JobCost | None) -> Iterator[Chunk]:
        """The outcomes that came back, then those of pages that the job did not come to.

        Results carry their part of the `cost`.

        Raises `ProviderError` when they cannot be fetched whole.
        """
        with own_folder(self._root) as out:
            yield from self._fetched(sent, at, end, cost, out)

    def _fetched(
        self, sent: Sent, at: TaskPlace, end: End, cost: JobCost | None, out: Path
    ) -> Iterator[Chunk]:
        names = [RESULTS, PROGRESS, OUTCOME, ENDED]
        fetched = self._store.fetch(f"{at.folder}/{OUT}", names, out, MAX_RESULTS_BYTES)
        in_time = not _time_was_over(fetched.files.get(ENDED))
        returned = read_returned(out, Expected.of_spec(sent.name, sent.spec), also=[ENDED])
        failure = _failure_of(sent, end, in_time=in_time or returned.complete)
        if cost is not None:  # how many there are decides what each of them cost
            cost.lines = Counter(
                _how(outcome)
                for outcomes in chain(returned.chunks(), returned.unwritten(failure))
                for outcome in outcomes
            )
        for part, outcomes in enumerate(chain(returned.chunks(), returned.unwritten(failure)), 1):
            yield Chunk(part, outcomes if cost is None else [*map(cost.shared, outcomes)])
        report = returned.report()
        if fetched.strange:
            words = f"Left in the store: files that were not asked for ({fetched.strange})."
            report = Report(report.facts, (*report.messages, Message("warning", words)))
        self._reports[sent.remote_id] = report

    def report(self, remote_id: str) -> Report | None:
        """What the runner told, once the results were read."""
        return self._reports.get(remote_id)

    def forget(self, remote_id: str) -> None:
        """Lets go of what was read of the task."""
        self._reports.pop(remote_id, None)


def _failure_of(sent: Sent, end: End, *, in_time: bool) -> Failure:
    if sent.stopped:
        return Failure(FailureKind.STOPPED, f"It was stopped: {end.words}.")
    if not in_time:
        return Failure(FailureKind.EXPIRED, f"The time of its task was over: {end.words}.")
    return Failure(end.kind or FailureKind.NODE, f"{end.words[:1].upper()}{end.words[1:]}.")


def _how(outcome: Outcome) -> str:
    return LANDED if outcome.failure is None else str(outcome.failure.kind)


def _time_was_over(path: Path | None) -> bool:
    """Whether the job ended its runner because its own time was nearly over."""
    if path is None:
        return False
    try:
        with path.open("rb") as stream:
            told: Any = json.loads(stream.read(1000))
    except (OSError, ValueError):
        told = None
    path.unlink(missing_ok=True)  # it is no file of the runner's
    return isinstance(told, dict) and told.get("why") == TIME_IS_OVER
