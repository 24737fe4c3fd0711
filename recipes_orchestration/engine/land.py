"""Land: outcomes of a task become rows of the library, or failures in the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from ..ledger.holds import Failure
from ..ledger.tasks import TaskRow
from ..library.results import Result
from ..places.place import Chunk
from ..recipe import page_key
from ..runner.work import FailureKind, Outcome
from .engine import Engine

__all__ = ["land_chunk"]


def land_chunk(engine: Engine, task: TaskRow, chunk: Chunk) -> int:
    """Writes a chunk and gives how many rows landed. Landing a chunk twice changes nothing.

    Results first, failures after: a kill in between costs a failed page one attempt that is not
    counted. Outcomes for a page or step that the task was not sent for are left out. Raises
    `SourceError` when pages could not be fetched because the source cannot be reached.
    """
    sha_of = dict(task.pages)
    wanted = [
        outcome
        for outcome in chunk.outcomes
        if outcome.page_id in sha_of and outcome.step in task.fingerprints
    ]
    twins = _twins(task)
    landed = 0
    for step, results in _results(task, wanted, sha_of, twins).items():
        engine.library.land(task.recipe, step, task.batch, task.name, chunk.part, results)
        landed += len(results)
    if any(each.failure and each.failure.kind is FailureKind.SOURCE for each in wanted):
        # With the whole source away, no page is to blame: this raises and nothing is counted.
        engine.source(task.source).list_root()
    failed = _failures(engine, task, wanted, sha_of, twins)
    if failed:
        engine.ledger.holds.failed_many(failed)
    return landed


def _twins(task: TaskRow) -> dict[str, list[str]]:
    """The pages of the task by their hash: equal bytes are worked on once and land for each."""
    twins: dict[str, list[str]] = defaultdict(list)
    for page_id, sha256 in task.pages:
        twins[sha256].append(page_id)
    return twins


def _results(
    task: TaskRow,
    outcomes: Sequence[Outcome],
    sha_of: dict[str, str],
    twins: dict[str, list[str]],
) -> dict[str, list[Result]]:
    now = datetime.now(UTC)
    by_step: dict[str, list[Result]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.failure is not None:
            continue
        sha256 = sha_of[outcome.page_id]
        for page_id in twins[sha256]:
            by_step[outcome.step].append(
                Result(
                    page_id=page_id,
                    key=page_key(task.fingerprints[outcome.step], sha256),
                    value=outcome.value,
                    # Work done once is counted once: the twins cost nothing.
                    seconds=outcome.seconds if page_id == outcome.page_id else 0.0,
                    task=task.name,
                    landed_at=now,
                )
            )
    return by_step


def _failures(
    engine: Engine,
    task: TaskRow,
    outcomes: Sequence[Outcome],
    sha_of: dict[str, str],
    twins: dict[str, list[str]],
) -> list[Failure]:
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    if not failed:
        return []
    before = engine.ledger.holds.attempts_of(task.recipe, task.source, task.batch)
    tries = engine.project.limits.tries
    rows: list[Failure] = []
    for outcome in failed:
        assert outcome.failure is not None
        sha256 = sha_of[outcome.page_id]
        key = page_key(task.fingerprints[outcome.step], sha256)
        for page_id in twins[sha256]:
            earlier = before.get((page_id, outcome.step, key))
            attempts = (earlier.attempts if earlier else 0) + 1
            rows.append(
                Failure(
                    recipe=task.recipe,
                    step=outcome.step,
                    source=task.source,
                    batch=task.batch,
                    page_id=page_id,
                    key=key,
                    reason=outcome.failure.kind.value,
                    words=outcome.failure.words,
                    hold=outcome.failure.kind is FailureKind.UNREADABLE or attempts >= tries,
                )
            )
    return rows
