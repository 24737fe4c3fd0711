"""What it means when `sbatch` fails. Pure; its words are those of slurm_strerror (Slurm 22.05).

Most failures say for certain that nothing was accepted. Those of the network do not: Slurm may
have taken the job before its answer was lost.
"""

from __future__ import annotations

import re

from ...errors import ProviderError, Refused
from .shell import Done

__all__ = ["LIMIT_SECONDS", "job_of", "submit_error"]

LIMIT_SECONDS = 300.0
"""A limit on how many jobs may be queued passes when some end: it is tried again so often."""

_NO_COMMAND = (127, 126)

_UNKNOWN = re.compile(
    r"timed out|unable to contact slurm|connect(ion)? (failure|refused|reset)|zero bytes"
    r"|unexpected message|communication|temporarily unable|i/o error|protocol|try again"
    r"|backup controller|standby|insane message|munge|slurm_persist|failed to fork|interrupted",
    re.IGNORECASE,
)
# Of one job, that do not pass: a job of this kind is never taken.
_OF_THE_JOB = re.compile(
    r"max(wall|timelimit|tres|cpus?|nodes?|mem\w*|jobs?wall)\w*(perjob|pernode|limit)|minutesper"
    r"|maxwall|mintres|minimum",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"submit ?job ?limit|maxsubmit|job submit limit|submitjobs|job count|maxjobcount"
    r"|maximum number of jobs|violates accounting/qos policy|too many jobs|no more jobs",
    re.IGNORECASE,
)
_ADVICE: tuple[tuple[str, str], ...] = (
    (r"job array specification", "Slurm takes fewer tasks in one array: raise pages_per_task"),
    (r"time limit|invalid --time", "Change `time` (and the ladder) of the place"),
    (r"account", "Change `account` or `partition` of the place; `sacctmgr show assoc` lists them"),
    (r"qos", "Change `qos` of the place"),
    (r"partition", "Change `partition` of the place; `sinfo` lists them"),
    (r"gres", "Change `gres` of the place; `sinfo -o %G` lists what there is"),
    (r"memory", "Change `mem` of the place"),
    (r"node configuration|processors|cpu", "Change `cpus`, `mem` or `gres` of the place"),
    (r"option|argument|invalid -", "Change `extra` of the place"),
    (r"permission|not permitted|denied", "Ask the site for leave, or change `partition`"),
)


def submit_error(place: str, done: Done) -> ProviderError:
    """The error of an `sbatch` that failed: `Refused` when nothing was accepted for certain."""
    words = _words(done.err or done.out)
    if done.code in _NO_COMMAND and "sbatch" in words:
        return Refused(
            f"{place}: there is no sbatch where the account logs in: {words}. "
            "Name the login node with `host`."
        )
    if _UNKNOWN.search(words) or not words:
        return ProviderError(
            f"{place}: sbatch ended with code {done.code}: {words or 'it said nothing'}. "
            "Slurm is asked for the job by its name."
        )
    if _PASSES.search(words) and not _OF_THE_JOB.search(words):
        return Refused(
            f"{place}: Slurm takes no more of your jobs for now: {words}.",
            account=True,
            retry_after=LIMIT_SECONDS,
        )
    advice = next(
        (advice for pattern, advice in _ADVICE if re.search(pattern, words, re.IGNORECASE)),
        "Change what it names in the place's settings",
    )
    return Refused(f"{place}: Slurm does not take it: {words}. {advice}.")


def job_of(out: str) -> int | None:
    """The job id that `sbatch --parsable` printed: `15` or `15;cluster`."""
    lines = [line.strip() for line in out.split("\n") if line.strip()]
    job = lines[-1].partition(";")[0] if lines else ""
    return int(job) if job.isdecimal() and len(job) < 19 else None


def _words(text: str) -> str:
    """What it said, without the names before it, each sentence once."""
    lines = [
        re.sub(r"^(sbatch: )?(error: )?(Batch job submission failed: )?", "", line.strip())
        for line in text.split("\n")
        if line.strip() and 'Try "sbatch --help"' not in line
    ]
    return "; ".join(dict.fromkeys(line.rstrip(".") for line in lines))[:600]
