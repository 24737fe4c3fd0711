"""How a task at Slurm stands, and why pages of it have no result. Pure.

Slurm's queue is believed first, then the element's own exit file, then the accounts. A task is
never said to have ended while it may still run: one that left the queue without a word is looked
at again before that counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...runner.work import FailureKind
from ..place import Standing, State
from .commands import Traces
from .queue import Row, pending_words
from .script import BUSY, MODULES_FAILED, NOT_FOUND, WHOLE_TASK_FAILED

__all__ = ["GRACE_SECONDS", "LAG_SECONDS", "Verdict", "left_queue", "verdict"]

GRACE_SECONDS = 10
"""An element that Slurm knows nothing of is asked for again after so long."""

LAG_SECONDS = 300
"""The accounts follow the queue by seconds; what they show as running for longer than this after
it left the queue is a leftover of theirs."""

# 128 and SIGKILL: what a shell says of a child that ran out of memory, or was killed by hand.
KILLED = 137
# The same with SIGTERM and SIGINT.
_TOLD_TO_END = (143, 130)
_OUT_OF_MEMORY = ("oom-kill", "oom_kill", "out of memory", "out-of-memory")
_BY_NODE = {
    "BOOT_FAIL": "its node did not start",
    "LAUNCH_FAILED": "its node did not start it",
    "NODE_FAIL": "its node failed",
    "PREEMPTED": "it was preempted",
    "RECONFIG_FAIL": "its node did not start",
    "REVOKED": "Slurm took it back",
}


# What the accounts show of an element that ended is why it last waited.
_NO_REASONS = ("None", "Priority", "Resources", "JobArrayTaskLimit")


@dataclass(frozen=True)
class Verdict:
    """How a task stands; once it has ended, `kind` is that of its pages that were not written."""

    state: State
    words: str
    kind: FailureKind = FailureKind.MISSING

    @property
    def standing(self) -> Standing:
        """The same for the engine."""
        return Standing(self.state, self.words)


def left_queue(row: Row | None) -> bool:
    """Whether an element may have ended, so that its traces are to be looked at."""
    return row is None or row.over or row.state == "COMPLETING"


def verdict(
    queue: Row | None,
    traces: Traces | None = None,
    accounts: Row | None = None,
    settle_seconds: float = 30.0,
) -> Verdict:
    """How an element stands by its row in the queue, what it left, and its row in the accounts."""
    if queue is not None and not left_queue(queue):
        return Verdict(State.RUNNING, _live_words(queue))
    if traces is None:
        return Verdict(State.RUNNING, "It left the queue and is looked at.")
    over = next((row for row in (queue, accounts) if row is not None and row.over), None)
    if queue is not None and not queue.over and not _says_why(traces):
        return Verdict(State.RUNNING, "It is being ended by Slurm.")
    if traces.exit is None and _may_follow(over, traces, accounts):
        wait = settle_seconds if over is not None else max(GRACE_SECONDS, settle_seconds)
        if over is None and accounts is not None:
            wait = max(wait, LAG_SECONDS)
        if traces.absent < wait:
            return Verdict(State.RUNNING, _absent_words(over, wait - traces.absent))
    return _ended(over, traces)


def _says_why(traces: Traces) -> bool:
    """Whether the exit file tells why it ended; of one that was killed, Slurm will tell."""
    if traces.exit is None:
        return False
    return traces.exit.code not in (KILLED, *_TOLD_TO_END) or traces.exit.why == "time"


def _live_words(row: Row) -> str:
    if row.state == "PENDING":
        return pending_words(row.reason)
    if row.state in ("REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"):
        return f"It is {row.state.lower().replace('_', ' ')} in Slurm's queue: {row.reason}."
    return f"Slurm says {row.state.lower()}."


def _may_follow(over: Row | None, traces: Traces, accounts: Row | None) -> bool:
    """Whether an exit file may still come to be seen: files of a node show late elsewhere."""
    if over is None:
        return not (traces.cancelled and accounts is None and not traces.started)
    return traces.started or over.state in ("COMPLETED", "FAILED")


def _absent_words(over: Row | None, seconds: float) -> str:
    what = "left the queue without a word" if over is None else f"ended ({over.state.lower()})"
    return f"It {what}; it is looked at again in {seconds:.0f} s."


def _ended(over: Row | None, traces: Traces) -> Verdict:
    state = "" if over is None else over.state
    code = None if traces.exit is None else traces.exit.code
    why = "-" if traces.exit is None else traces.exit.why
    if code == 0:
        return Verdict(State.ENDED, "It ended.")
    if code == WHOLE_TASK_FAILED:
        return Verdict(State.FAILED, _failed("The runner cannot do it", traces))
    if not traces.folder:
        words = "Its folder is gone from scratch: " + (_told(over) or "Slurm says nothing of it.")
        return Verdict(State.ENDED, words, FailureKind.NODE)
    if state in ("TIMEOUT", "DEADLINE") or why == "time":
        return Verdict(State.ENDED, "Its time limit was over.", FailureKind.EXPIRED)
    if state == "OUT_OF_MEMORY" or code == KILLED or _out_of_memory(traces.log):
        words = "Its memory was not enough: " + ("it was killed." if code else _told(over))
        return Verdict(State.ENDED, words, FailureKind.MEMORY)
    if state in _BY_NODE:
        return Verdict(State.ENDED, f"Slurm ended it: {_BY_NODE[state]}.", FailureKind.NODE)
    if state == "CANCELLED" or traces.cancelled:
        return Verdict(State.ENDED, "It was cancelled.", FailureKind.CANCELLED)
    if why == "term" or code in _TOLD_TO_END:
        words = "It was told to end before it was done."
        return Verdict(State.ENDED, words, FailureKind.NODE)
    if code == BUSY:
        words = "Another runner still works in its folder."
        return Verdict(State.ENDED, words, FailureKind.NODE)
    if code is not None:
        return _failed_by_itself(code, traces)
    return _without_exit(over, traces)


def _failed_by_itself(code: int, traces: Traces) -> Verdict:
    """An exit code of its own: a task that wrote pages keeps them, one without fails in words."""
    if traces.results and code not in (NOT_FOUND, MODULES_FAILED):
        words = _failed(f"The runner ended with code {code}", traces)
        return Verdict(State.ENDED, words, FailureKind.DIED)
    what = {
        NOT_FOUND: "The runner was not found there",
        MODULES_FAILED: "A module could not be loaded there",
    }.get(code, f"The runner ended with code {code} before it wrote anything")
    return Verdict(State.FAILED, _failed(what, traces))


def _without_exit(over: Row | None, traces: Traces) -> Verdict:
    if over is None:
        if traces.started:
            words = "It left the queue and wrote no exit file: it was killed, or its node is gone."
            return Verdict(State.ENDED, words, FailureKind.NODE)
        words = "It left the queue before it began, and Slurm does not say why."
        return Verdict(State.ENDED, words, FailureKind.CANCELLED)
    if traces.started or over.state == "COMPLETED":
        words = f"It was killed: {_told(over)}"
        return Verdict(State.ENDED, words, FailureKind.NODE)
    return Verdict(State.FAILED, _failed(f"Slurm could not start it: {_told(over)}", traces))


def _told(over: Row | None) -> str:
    if over is None:
        return ""
    more = [each for each in (over.code, over.reason) if each and each not in _NO_REASONS]
    return f"Slurm says {over.state.lower()}{''.join(f', {each}' for each in more)}."


def _failed(what: str, traces: Traces) -> str:
    if not traces.log:
        return f"{what.rstrip('.')}; it left no log."
    return f"{what.rstrip('.')}. Its log ends with: {' '.join(traces.log.split())[-1000:]}"


def _out_of_memory(log: str) -> bool:
    lower = log.lower()
    return any(each in lower for each in _OUT_OF_MEMORY)
