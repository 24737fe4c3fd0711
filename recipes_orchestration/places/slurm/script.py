"""The batch script of an array of tasks and the arguments of `sbatch` for it. Pure.

One element of the array runs one task folder. Beside the task folders the script leaves a file
`started.<index>` and, however it ends but for SIGKILL, `exit.<index>`: one line, written whole.
From Slurm's manual pages (sbatch(1), 22.05, November 2026): with `--export=NONE` the job gets the
environment of a login; `--signal=B:` reaches the script alone, before its time is over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "BUSY",
    "EXIT",
    "LOGS",
    "MODULES_FAILED",
    "NOT_FOUND",
    "STARTED",
    "WHOLE_TASK_FAILED",
    "Mark",
    "Rung",
    "SlurmRules",
    "batch_script",
    "mark_of",
    "sbatch_argv",
    "time_seconds",
]

STARTED, EXIT = "started", "exit"
"""Files of the array folder, with the element's index as their ending."""

LOGS = "log"
"""In the array folder: `<job>_<index>.log` of each element."""

WHOLE_TASK_FAILED = 3
"""The runner's exit code when the task as a whole cannot be done."""
BUSY = 75
"""The runner's exit code when another one works in the folder."""
MODULES_FAILED = 120
NOT_FOUND = 127

# The runner is told so long before the time is over, where the limit leaves room for it: Slurm may
# be up to 60 s early with it.
WARNING_SECONDS = 60
WARNED_FROM_SECONDS = 600
# The script begins a little later than the time that Slurm counts.
LATE_SECONDS = 5

_TIME = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_PLAIN_COMMAND = re.compile(r"[\w./~+-]+")
_APPTAINER = ("apptainer", "singularity")


@dataclass(frozen=True)
class Rung:
    """Time and memory of a task; what is None stays as it was."""

    time: str | None = None
    mem: str | None = None


@dataclass(frozen=True)
class SlurmRules:
    """What the project says of the place; see `SlurmSettings`. `scratch` may begin with `~/`."""

    scratch: str = "~/recipes"
    runner: str = "recipes-runner"
    setup: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    container: str | None = None
    container_run: str = "apptainer exec"
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    gres: str | None = None
    time: str | None = None
    mem: str | None = None
    cpus: int | None = None
    extra: tuple[str, ...] = ()
    parallel: int | None = None
    pages_per_task: int | None = None
    task_minutes: float = 60.0
    max_open: int = 2
    ladder: tuple[Rung, ...] = ()
    settle_seconds: float = 30.0

    def rung(self, number: int) -> Rung:
        """Time and memory of a task whose pages got too little `number` times before."""
        time, mem = self.time, self.mem
        for rung in self.ladder[:number]:
            time, mem = rung.time or time, rung.mem or mem
        return Rung(time, mem)


@dataclass(frozen=True)
class Mark:
    """What an element wrote of itself: `started` has no code.

    `why` is `time` when Slurm said that its time was nearly over, or ended it when it was, and
    `term` when it was told to end before.
    """

    job: int
    code: int | None
    began: int
    ended: int
    why: str
    host: str


def sbatch_argv(
    rules: SlurmRules, name: str, folder: str, indexes: Sequence[int], rung: int
) -> list[str]:
    """The command that sends the array `name` with these indexes, whose folder is `folder`.

    The script is to be its standard input, and `LOGS` is to be there: without it Slurm fails the
    job at its start and leaves no log.
    """
    limits = rules.rung(rung)
    most = "" if rules.parallel is None else f"%{rules.parallel}"
    options = {
        "account": rules.account,
        "partition": rules.partition,
        "qos": rules.qos,
        "gres": rules.gres,
        "time": limits.time,
        "mem": limits.mem,
        "cpus-per-task": rules.cpus,
    }
    warned = limits.time is not None and time_seconds(limits.time) >= WARNED_FROM_SECONDS
    if warned and not any(option.startswith("--signal") for option in rules.extra):
        options["signal"] = f"B:USR1@{WARNING_SECONDS}"
    return [
        *("sbatch", "--parsable", f"--job-name={name}", f"--array={_ranges(indexes)}{most}"),
        *("--no-requeue", "--export=NONE", f"--chdir={folder}"),
        f"--output={folder}/{LOGS}/%A_%a.log",
        *(f"--{option}={value}" for option, value in options.items() if value is not None),
        *rules.extra,
    ]


def batch_script(rules: SlurmRules, name: str, folder: str, rung: int = 0) -> str:
    """The script that each element runs. `folder` is the array folder, an absolute path."""
    limit = time_seconds(rules.rung(rung).time or "")
    return "\n".join(
        [
            "#!/bin/bash -l",
            f"# One task of {name}; written by recipes-orchestration.",
            f"folder={shlex.quote(folder)}",
            f"limit={max(0, limit - LATE_SECONDS)}",
            _BEGIN,
            *rules.setup,
            *(_module(each) for each in rules.modules),
            "set +e +u",
            *_found(rules),
            '[ "$why" = - ] || exit 143',
            f'{_command(rules, folder)} "$folder/$index" &',
            _END,
        ]
    )


def mark_of(line: str) -> Mark | None:
    """A line of `STARTED` or `EXIT`; None for anything else."""
    parts = line.split()
    if len(parts) != 7 or parts[0] != "1" or parts[5] not in ("-", "time", "term"):
        return None
    job, code, began, ended = parts[1:5]
    numbers = (job, began, ended, "0" if code == "-" else code)
    if not all(each.isdecimal() and len(each) < 19 for each in numbers):
        return None
    return Mark(
        job=int(job),
        code=None if code == "-" else int(code),
        began=int(began),
        ended=int(ended),
        why=parts[5],
        host=parts[6],
    )


# A trap runs when `wait` is interrupted, and `wait` then tells the signal, not the child's code:
# it is asked again, and remembers the code of a child that has ended meanwhile.
_BEGIN = f"""\
index=$SLURM_ARRAY_TASK_ID
job=$SLURM_ARRAY_JOB_ID
began=$(date +%s)
why=- child= interrupted=
record() {{
  local beside="$folder/.$1.$job"
  printf '1 %s %s %s %s %s %s\\n' "$job" "$2" "$began" "$(date +%s)" "$why" "${{HOSTNAME:-none}}" \\
    >"$beside" && mv -f "$beside" "$folder/$1"
}}
end() {{
  interrupted=1
  [ "$why" != - ] || why=$1
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}}
trap 'code=$?; trap "" USR1 TERM INT; record "{EXIT}.$index" "$code"' EXIT
trap 'end time' USR1
# Told to end when its time is over, it says so: Slurm may have forgotten it by the next look.
late() {{ [ "$limit" -gt 0 ] && [ $(($(date +%s) - began)) -ge "$limit" ]; }}
trap 'if late; then end time; else end term; fi' TERM INT
record "{STARTED}.$index" -
cd "$folder" || exit {NOT_FOUND}
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS="${{OMP_NUM_THREADS:-${{SLURM_CPUS_PER_TASK:-${{SLURM_CPUS_ON_NODE:-1}}}}}}"
"""

_END = """\
child=$!
[ "$why" = - ] || kill -TERM "$child" 2>/dev/null
while :; do
  interrupted=
  wait "$child"
  code=$?
  [ -n "$interrupted" ] || break
done
exit "$code"
"""


def _ranges(indexes: Sequence[int]) -> str:
    """`0-3,5`: Slurm takes a long list in few characters only."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in parts)


def _module(name: str) -> str:
    words = f"recipes: the module {name} could not be loaded on"
    load = f"module load {shlex.quote(name)}"
    return f'{load} || {{ echo "{words} $HOSTNAME" >&2; exit {MODULES_FAILED}; }}'


def _found(rules: SlurmRules) -> list[str]:
    """Says in words that the command is not there, where it is a plain name or path."""
    command = (rules.container_run if rules.container else rules.runner).split()[0]
    if not _PLAIN_COMMAND.fullmatch(command):
        return []
    words = f"recipes: there is no {command} on $HOSTNAME"
    check = f"command -v {command} >/dev/null"
    return [f'{check} || {{ echo "{words}" >&2; exit {NOT_FOUND}; }}']


def _command(rules: SlurmRules, folder: str) -> str:
    if rules.container is None:
        return rules.runner
    run = rules.container_run
    if run.split()[0].rpartition("/")[2] in _APPTAINER:
        # The batch folder has the pages; a container sees little more than the home folder.
        run += f" --bind {shlex.quote(folder.rpartition('/')[0])}"
    return f"{run} {_path(rules.container)} {rules.runner}"


def _path(path: str) -> str:
    """A path as one word of a shell that still knows a home folder at its beginning."""
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)


def time_seconds(time: str) -> int:
    """Seconds of a time limit, HH:MM:SS or D-HH:MM:SS; 0 for anything else."""
    found = _TIME.fullmatch(time)
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
