"""How a job of Hugging Face ended, and what that means for the pages that it did not come to.

A job has a stage and a message in words. "Job timeout" is in the documentation
(https://huggingface.co/docs/hub/jobs-manage, November 2026), the other words are not, so several
are known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...runner.work import FailureKind
from .hub import Job

__all__ = ["End", "end_of", "is_over"]

_OVER = ("COMPLETED", "CANCELED", "ERROR", "DELETED")
_TIME = re.compile(r"time\s?-?out|timed out|time limit", re.IGNORECASE)
_MEMORY = re.compile(r"\boom|out.of.memory|memory limit|exceeded memory", re.IGNORECASE)
# Ended from outside: by a signal, with its machine, or moved away from it.
_NODE = re.compile(
    r"exit code:? (137|143)\b|\bsig(kill|term)\b|\bkilled\b|evict|preempt|\bnode\b|lost|unhealthy",
    re.IGNORECASE,
)
_MONEY = re.compile(r"credit|payment|billing|balance|quota", re.IGNORECASE)


@dataclass(frozen=True)
class End:
    """`kind` is what pages that were not done get; None: the job failed by itself.

    `account`: it ended for a reason of the account.
    """

    kind: FailureKind | None
    words: str
    account: bool = False


def is_over(job: Job) -> bool:
    """Whether nothing works on it any more; a stage that is not known is one of going on."""
    return job.stage in _OVER


def end_of(job: Job | None) -> End:
    """How a job ended that is over, or that the Hub does not know any more."""
    if job is None:
        return End(FailureKind.NODE, "Hugging Face does not know its job any more")
    said = f": {job.message}" if job.message else ""
    if job.stage == "CANCELED":
        return End(FailureKind.CANCELLED, f"job {job.id} was cancelled at Hugging Face{said}")
    if job.stage == "DELETED":
        return End(FailureKind.CANCELLED, f"job {job.id} was deleted at Hugging Face{said}")
    if job.stage == "COMPLETED":
        return End(FailureKind.MISSING, f"job {job.id} ended without a result for it")
    if _TIME.search(job.message):
        return End(FailureKind.EXPIRED, f"the time of job {job.id} was over{said}")
    if _MEMORY.search(job.message):
        return End(FailureKind.MEMORY, f"job {job.id} ran out of memory{said}")
    if _NODE.search(job.message):
        return End(FailureKind.NODE, f"job {job.id} was ended by its machine{said}")
    account = _MONEY.search(job.message) is not None
    return End(None, f"job {job.id} failed at Hugging Face{said}", account)
