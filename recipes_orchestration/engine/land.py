"""Land: outcomes of a task become results in the library and failures in the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from ..ledger.holds import Failure
from ..ledger.tasks import TaskRow
from ..library.results import Result
from ..place_settings import CloudSettings
from ..places.place import Chunk
from ..recipe import page_key, page_keys
from ..runner.work import CUT_SHORT, UNANSWERED, FailureKind, Outcome
from ..runner.work import Failure as PageFailure
from .engine import Engine

__all__ = ["CUT_SHORT_TRIES", "DEADLINE", "TaskPages", "land_chunk"]

CUT_SHORT_TRIES = 3
"""A page whose job ended without it goes so often in all, then it is held."""

DEADLINE = "deadline"
"""Why a task's end was asked for: its step's deadline has passed."""

# Failures that no page is to blame for: no attempt is counted.
_UNCOUNTED = (FailureKind.ACCOUNT, FailureKind.STOPPED)


# What becomes of pages whose task is ended before it came to them.
_CUT_OFF = frozenset(
    {*UNANSWERED, FailureKind.CANCELLED, FailureKind.MISSING, FailureKind.NODE, FailureKind.STOPPED}
)


@dataclass(frozen=True)
class TaskPages:
    """The hashes of a task's pages, and the pages of each hash that several have: equal bytes are
    worked on once and land for each.
    """

    sha_of: dict[str, str]
    twins: dict[str, list[str]]

    @classmethod
    def of(cls, task: TaskRow) -> TaskPages:
        """Those of the task; made once for all its chunks."""
        first: dict[str, str] = {}
        twins: dict[str, list[str]] = {}
        for page_id, sha256 in task.pages:
            if sha256 in first:
                twins.setdefault(sha256, [first[sha256]]).append(page_id)
            else:
                first[sha256] = page_id
        return cls(dict(task.pages), twins)

    def equal_to(self, page_id: str) -> Sequence[str]:
        """The pages of the same hash, this one too."""
        return self.twins.get(self.sha_of[page_id], (page_id,))


def land_chunk(engine: Engine, task: TaskRow, chunk: Chunk, pages: TaskPages | None = None) -> int:
    """Writes a chunk and gives how many rows landed. Landing a chunk twice changes nothing.

    Results first, failures after: a kill in between costs a failed page one attempt that is not
    counted. Outcomes for a page or step that the task was not sent for are left out, and failures
    of a task that another process has closed meanwhile. A failure of the account pauses the place.
    Raises `SourceError` when pages could not be fetched because the source cannot be reached.
    """
    pages = pages or TaskPages.of(task)
    wanted = [
        outcome
        for outcome in chunk.outcomes
        if outcome.page_id in pages.sha_of and outcome.step in task.fingerprints
    ]
    landed = 0
    for step, results in _results(task, wanted, pages).items():
        engine.library.land(task.recipe, step, task.batch, task.name, chunk.part, results)
        landed += len(results)
    failed = [outcome for outcome in wanted if outcome.failure is not None]
    if failed and not engine.ledger.tasks.is_open(task.id):
        # Another process has landed all of it, and what this one did not find may be removed.
        return landed
    kinds = {outcome.failure.kind: outcome.failure.words for outcome in failed if outcome.failure}
    if FailureKind.SOURCE in kinds:
        # With the whole source away, no page is to blame: this raises and nothing is counted.
        engine.source(task.source).list_root()
    counted = _failures(engine, task, failed, pages)
    if counted:
        engine.ledger.holds.failed_many(counted)
    if FailureKind.ACCOUNT in kinds:
        engine.ledger.pauses.pause(task.place, kinds[FailureKind.ACCOUNT])
    return landed


def _results(
    task: TaskRow,
    outcomes: Sequence[Outcome],
    pages: TaskPages,
) -> dict[str, list[Result]]:
    now = datetime.now(UTC)
    by_step: dict[str, list[Result]] = defaultdict(list)
    key_of = {step: page_keys(fingerprint) for step, fingerprint in task.fingerprints.items()}
    sha_of, twins = pages.sha_of, pages.twins
    for outcome in outcomes:
        if outcome.failure is not None:
            continue
        page_id, step, _, _, _, _ = outcome
        sha256 = sha_of[page_id]
        result = _result(task, outcome, key_of[step](sha256), now)
        by_step[step].append(result)
        if twins and sha256 in twins:
            by_step[step] += [_twin(result, each) for each in twins[sha256] if each != page_id]
    return by_step


def _result(task: TaskRow, outcome: Outcome, key: str, now: datetime) -> Result:
    page_id, _, seconds, value, _, spent = outcome
    if spent is None:
        return Result(page_id, key, value, seconds, task.name, now)
    model, tokens_in, tokens_out, cached, usd, basis = spent
    return Result(
        page_id,
        key,
        value,
        seconds,
        task.name,
        now,
        model,
        tokens_in,
        tokens_out,
        usd,
        cached,
        basis,
    )


def _twin(result: Result, page_id: str) -> Result:
    """The result for a page of equal bytes. Work done once is counted once: it cost nothing."""
    return result._replace(
        page_id=page_id,
        seconds=0.0,
        tokens_in=None,
        tokens_out=None,
        tokens_cached=None,
        cost_usd=None if result.cost_usd is None else Decimal(0),
    )


def _failures(
    engine: Engine,
    task: TaskRow,
    failed: Sequence[Outcome],
    pages: TaskPages,
) -> list[Failure]:
    if not failed:
        return []
    before = engine.ledger.holds.attempts_of(task.recipe, task.source, task.batch)
    rows: list[Failure] = []
    for outcome in failed:
        assert outcome.failure is not None
        kind, words = _judged(task, outcome.failure)
        if kind in _UNCOUNTED:
            continue
        key = page_key(task.fingerprints[outcome.step], pages.sha_of[outcome.page_id])
        for page_id in pages.equal_to(outcome.page_id):
            earlier = before.get((page_id, outcome.step, key))
            counted = earlier is not None and earlier.task == task.name
            attempts = (earlier.attempts if earlier else 0) + (not counted)
            rows.append(
                Failure(
                    recipe=task.recipe,
                    step=outcome.step,
                    source=task.source,
                    batch=task.batch,
                    page_id=page_id,
                    key=key,
                    reason=kind.value,
                    words=words,
                    hold=_is_held(engine, task, kind, attempts),
                    task=task.name,
                )
            )
    return rows


def _judged(task: TaskRow, failure: PageFailure) -> tuple[FailureKind, str]:
    """The kind of a failure and its words: what a deadline cut short failed for that reason."""
    if task.stopped != DEADLINE or failure.kind not in _CUT_OFF:
        return failure.kind, failure.words
    return FailureKind.DEADLINE, f"The step's deadline passed before it was done. {failure.words}"


def _is_held(engine: Engine, task: TaskRow, kind: FailureKind, attempts: int) -> bool:
    """Whether the page waits for a person now."""
    tries = engine.project.limits.tries
    if kind in CUT_SHORT and not isinstance(engine.project.places.get(task.place), CloudSettings):
        # Its task ended before the page was done, and each further one may have more time or
        # memory.
        tries = max(tries, CUT_SHORT_TRIES)
    if kind in (FailureKind.UNREADABLE, FailureKind.DEADLINE) or attempts >= tries:
        return True
    return kind in UNANSWERED and engine.on_expired(task.place) == "hold"
