"""What Slurm's commands print, as rows by array and index. Pure.

From squeue(1), sacct(1) and Slurm 22.05 (November 2026): `squeue -r` has a row for each element;
`sacct` shows waiting ones as a range, `15_[2-4,6-7%2]`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

__all__ = [
    "OVER",
    "Element",
    "Row",
    "accounting_rows",
    "indexes",
    "pending_words",
    "queue_rows",
]

Element = tuple[int, int]
"""The array's job id and the index in it: an element's own id is no use, as one has the array's."""

OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"}
    | {"OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"}
)
"""States after which an element never runs again; any other one may still run."""

MAX_INDEXES = 100_000


@dataclass(frozen=True)
class Row:
    """How Slurm says that an element stands.

    `code` is `<exit code>:<signal>`, of sacct alone, `folder` where it works, where that is told.
    """

    name: str
    state: str
    reason: str = ""
    code: str = ""
    folder: str = ""

    @property
    def over(self) -> bool:
        """Whether it never runs again."""
        return self.state in OVER

    @property
    def refused(self) -> bool:
        """Whether it is only the row of a job that `sbatch` was refused (Slurm 22.05)."""
        return self.state == "FAILED" and self.reason == "BadConstraints"


def queue_rows(text: str, names: Collection[str]) -> dict[Element, Row]:
    """The rows of `squeue -r -h -o '%F|%K|%T|%r|%j|%Z'` for arrays of these names."""
    rows: dict[Element, Row] = {}
    for line in text.split("\n"):
        parts = [*line.split("|", 5), ""]
        if len(parts) > 5 and parts[4] in names and parts[0].isdecimal():
            row = Row(parts[4], parts[2].upper(), parts[3], folder=parts[5])
            rows.update(((int(parts[0]), index), row) for index in indexes(parts[1]))
    return rows


def accounting_rows(text: str, names: Collection[str]) -> dict[Element, Row]:
    """The rows of `sacct -n -X -P -o JobID,State,ExitCode,JobName,Reason,WorkDir` for names.

    An element that is in it twice, as a range and alone, stands as it does alone.
    """
    rows: dict[Element, Row] = {}
    alone: set[Element] = set()
    for line in text.split("\n"):
        parts = line.split("|")
        if len(parts) < 5 or parts[3] not in names:
            continue
        job, _, index = parts[0].partition("_")
        if not job.isdecimal():
            continue
        state = parts[1].split(" ")[0].upper()  # CANCELLED by 1000
        for each in indexes(index):
            element = (int(job), each)
            if index.isdecimal():
                alone.add(element)
            elif element in alone:
                continue
            rows[element] = Row(parts[3], state, parts[4], parts[2], "|".join(parts[5:]))
    return rows


def indexes(text: str) -> Iterator[int]:
    """The indexes of `3`, `[2-4,6-7%2]` or `[0-10:5]`; none of anything else."""
    inside = text.removeprefix("[").removesuffix("]").partition("%")[0]
    for part in inside.split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)
        if found is None:
            continue
        first = int(found[1])
        last = int(found[2]) if found[2] else first
        step = max(1, int(found[3])) if found[3] else 1
        yield from range(first, min(last, first + MAX_INDEXES) + 1, step)


_RELEASE = "Look at it there; scontrol release lets it go on, scancel ends it"
_SETTINGS = "Change the place's settings and end it with scancel"

# Reasons for which an element waits until somebody does something (squeue(1), JOB REASON CODES).
_FOR_EVER: Mapping[str, str] = {
    "accountnotallowed": f"the account may not use the partition. {_SETTINGS}",
    "associationlimit": f"it asks for more than the account may have. {_SETTINGS}",
    "badconstraints": f"no node can give what it asks for. {_SETTINGS}",
    "dependencyneversatisfied": "what it depends on failed. End it with scancel",
    "invalidaccount": f"the account is not valid. {_SETTINGS}",
    "invalidqos": f"the qos is not valid. {_SETTINGS}",
    "jobheldadmin": "an administrator holds it. Ask them",
    "jobhelduser": f"somebody holds it. {_RELEASE}",
    "jobholdmaxrequeue": f"it was started too often. {_RELEASE}",
    "jobarraytasklimit0": f"its array may run no task. {_RELEASE}",
    "launchfailedrequeuedheld": f"its start failed and Slurm holds it. {_RELEASE}",
    "partitionconfig": f"the partition never gives what it asks for. {_SETTINGS}",
    "partitionnodelimit": f"it asks for more nodes than the partition has. {_SETTINGS}",
    "partitiontimelimit": f"it asks for more time than the partition gives. {_SETTINGS}",
    "qosnotallowed": f"the account may not use the qos. {_SETTINGS}",
    "reservationdeleted": f"its reservation is gone. {_SETTINGS}",
}
# Of limits on one job, that do not pass when others end: MaxWallDurationPerJob, MaxTRESPerNode.
_LIMIT_FOR_EVER = re.compile(r"(PerJob|PerNode|MinCpu|MinGRES|MinMemory|MaxWall)", re.IGNORECASE)


def pending_words(reason: str) -> str:
    """What a waiting element waits for; one that never starts by itself says so."""
    plain = re.sub(r"[^a-z0-9]", "", reason.lower())
    words = _FOR_EVER.get(plain)
    if words is None and _LIMIT_FOR_EVER.search(reason):
        words = f"it asks for more than its limits allow. {_SETTINGS}"
    if words is not None:
        return f"It waits in Slurm's queue and never starts by itself ({reason}): {words}."
    return f"It waits in Slurm's queue ({reason or 'no reason given'})."
