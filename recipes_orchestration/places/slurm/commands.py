"""What is run on the login node: short scripts for `sh`, with their arguments. Pure.

Each does its work in one call, as a call over ssh takes longer than anything in it. What Slurm's
commands are told is on their command lines: variables that would change it are taken away.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ...runner.task_folder import MANIFEST, OUT, RESULTS
from .queue import Element
from .script import EXIT, LOGS, STARTED, Mark, mark_of

__all__ = [
    "ABSENT",
    "ARRAYS",
    "CANCELLED",
    "NO_FOLDER",
    "NO_ROOM",
    "Traces",
    "accounting_command",
    "cancel_command",
    "find_command",
    "folders_command",
    "login_command",
    "queue_command",
    "submit_command",
    "traces_command",
    "traces_input",
    "traces_of",
]

ARRAYS = ".arrays"
"""In the root folder: a file for each array, which says in which batch folder it lies."""

CANCELLED, ABSENT, SUBMITTED, SCRIPT = "cancelled", "absent", "job", "script.sh"

# Exit codes of ours, which neither sh nor Slurm's commands have.
NO_FOLDER = 91
NO_ROOM = 92

# A look at an element that Slurm does not know is forgotten after so long, in seconds.
ABSENT_FORGOTTEN = 3600
LOG_TAIL_BYTES = 2000
SQUEUE_SECONDS = 40
SACCT_SECONDS = 40
# What an array's job of long ago may have left in the accounts is looked for so far back.
SACCT_SINCE = "now-30days"
# More names than this make a command line too long: then all jobs of the user are listed.
MAX_NAMES = 500

_PLAIN = r"""
names='s/^\(SQUEUE_[A-Z_]*\|SACCT_[A-Z_]*\|SCANCEL_[A-Z_]*\)=.*/\1/p'
for each in $(env | sed -n "$names"); do unset "$each"; done
"""


@dataclass(frozen=True)
class Traces:
    """What an element left in its array folder.

    `absent` is for how long it has been known that it left the queue without an exit file, in
    seconds. `results`: it wrote some. `folder`: its task folder is there. `log` is its end.
    """

    exit: Mark | None = None
    started: bool = False
    cancelled: bool = False
    results: bool = False
    folder: bool = True
    absent: int = 0
    log: str = ""


def login_command(scratch: str, project: str) -> list[str]:
    """Makes the root folder; prints it, PATH and SLURM_CONF, one a line.

    The last two are those of a login where only a login knows Slurm's commands. `scratch` may
    begin with `~/`. Ends with `NO_FOLDER` when the folder cannot be made.
    """
    return ["sh", "-c", _LOGIN, "sh", scratch, project]


def queue_command(names: Collection[str]) -> list[str]:
    """`squeue` of all elements of these arrays."""
    wanted = ["-n", ",".join(sorted(names))] if len(names) <= MAX_NAMES else []
    squeue = ["squeue", "--me", "-h", "-r", "-t", "all", *wanted, "-o", "%F|%K|%T|%r|%j|%Z"]
    return ["sh", "-c", _PLAIN + 'exec "$@"', "sh", "timeout", str(SQUEUE_SECONDS), *squeue]


def accounting_command(names: Collection[str]) -> list[str]:
    """`sacct` of all elements of these arrays; it fails where Slurm keeps no accounts."""
    sacct = ["sacct", "-n", "-X", "-P", "-S", SACCT_SINCE, f"--name={','.join(sorted(names))}"]
    columns = ["-o", "JobID,State,ExitCode,JobName,Reason,WorkDir"]
    command = ["timeout", str(SACCT_SECONDS), *sacct, *columns]
    return ["sh", "-c", _PLAIN + 'exec "$@"', "sh", *command]


def find_command(root: str, name: str) -> list[str]:
    """Prints the batch folder of an array and, one a line, the marks of its elements."""
    return ["sh", "-c", _FIND, "sh", root, name]


def folders_command(root: str, batch: str, name: str, indexes: Sequence[int]) -> list[str]:
    """Makes the folders of tasks, before anything is sent into them."""
    array = f"{root}/{batch}/{name}"
    folders = [f"{array}/{LOGS}", *(f"{array}/{index}/{OUT}" for index in indexes)]
    return ["mkdir", "-p", "--", f"{root}/{ARRAYS}", *folders]


def submit_command(
    root: str, batch: str, name: str, first: int, sbatch: Sequence[str]
) -> list[str]:
    """Sends an array whose task folders are there, `first` too; its script is standard input.

    Ends with `NO_FOLDER` when they are not, with `NO_ROOM` when nothing can be written, both
    before Slurm was asked; else as `sbatch` does.
    """
    return ["sh", "-c", _SUBMIT, "sh", root, batch, name, str(first), *sbatch]


def cancel_command(folder: str, name: str, element: Element) -> list[str]:
    """Ends one element, and leaves a mark that it was we who did."""
    job, index = element
    return ["sh", "-c", _PLAIN + _CANCEL, "sh", folder, str(index), name, str(job)]


def traces_command(root: str) -> list[str]:
    """Prints what elements of `traces_input` left; ends with `NO_FOLDER` where `root` is not."""
    return ["sh", "-c", _TRACES, "sh", root]


def traces_input(elements: Iterable[tuple[Element, str]]) -> str:
    """Elements with their array folders as `traces_command` reads them."""
    return "".join(f"{job} {index} {folder}\n" for (job, index), folder in elements)


def traces_of(text: str, jobs: Sequence[int]) -> list[Traces]:
    """What `traces_command` printed, in the order of its input; `jobs` are those of the elements.

    Marks of another job, which had the folder before, are not believed.
    """
    found: dict[int, Traces] = {}
    for line in text.split("\n"):
        parts = line.split("|")
        if len(parts) != 8 or not parts[0].isdecimal() or int(parts[0]) >= len(jobs):
            continue
        job = jobs[int(parts[0])]
        ended, started = mark_of(parts[1]), mark_of(parts[2])
        found[int(parts[0])] = Traces(
            exit=ended if ended is not None and ended.job == job else None,
            started=started is not None and started.job == job,
            cancelled=parts[3].split() == [str(job)],
            results=parts[4] == "1",
            folder=parts[5] == "1",
            absent=int(parts[6]) if parts[6].isdecimal() else 0,
            log=_decoded(parts[7]),
        )
    return [found.get(number, Traces()) for number in range(len(jobs))]


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace").strip()
    except binascii.Error:
        return ""


_LOGIN = f"""\
case $1 in
'~'|'~/'*) root=$HOME${{1#'~'}} ;;
*) root=$1 ;;
esac
root=${{root%/}}/$2
mkdir -p -m 700 -- "$root" && cd -- "$root" || exit {NO_FOLDER}
pwd -P
if command -v sbatch >/dev/null 2>&1; then
  printf '%s\\n%s\\n' "$PATH" "$SLURM_CONF"
else
  bash -lc 'printf "\\n%s\\n%s\\n" "$PATH" "$SLURM_CONF"' 2>/dev/null | tail -n 2
fi
"""

_FIND = f"""\
cat "$1/{ARRAYS}/$2" 2>/dev/null || exit 0
read -r batch <"$1/{ARRAYS}/$2" || exit 0
cd "$1/$batch/$2" 2>/dev/null || exit 0
cat {SUBMITTED} {STARTED}.* {EXIT}.* 2>/dev/null
exit 0
"""

_SUBMIT = f"""\
root=$1 batch=$2 name=$3 first=$4
shift 4
folder=$root/$batch/$name
[ -e "$folder/$first/{MANIFEST}" ] || exit {NO_FOLDER}
printf '%s\\n' "$batch" >"$root/{ARRAYS}/.$name.$$" &&
  mv -f "$root/{ARRAYS}/.$name.$$" "$root/{ARRAYS}/$name" || exit {NO_ROOM}
cat >"$folder/{SCRIPT}" || exit {NO_ROOM}
out=$("$@" <"$folder/{SCRIPT}")
code=$?
if [ $code -eq 0 ]; then
  printf '%s\\n' "$out" >"$folder/.{SUBMITTED}.$$" &&
    mv -f "$folder/.{SUBMITTED}.$$" "$folder/{SUBMITTED}"
fi
printf '%s\\n' "$out"
[ $code -eq {NO_FOLDER} ] || [ $code -eq {NO_ROOM} ] && code=1
exit $code
"""

_CANCEL = f"""\
[ ! -d "$1" ] || echo "$4" >"$1/{CANCELLED}.$2"
exec scancel --name="$3" "$4_$2"
"""

_TRACES = f"""\
[ -d "$1" ] || exit {NO_FOLDER}
now=$(date +%s) number=0
while read -r job index folder; do
  ended= started= cancelled= results=0 there=0 absent=0 log=
  {{ read -r ended <"$folder/{EXIT}.$index"; }} 2>/dev/null
  {{ read -r started <"$folder/{STARTED}.$index"; }} 2>/dev/null
  {{ read -r cancelled <"$folder/{CANCELLED}.$index"; }} 2>/dev/null
  case $ended$started$cancelled in *'|'*) ended= started= cancelled= ;; esac
  [ ! -s "$folder/$index/{OUT}/{RESULTS}" ] || results=1
  [ ! -d "$folder/$index" ] || there=1
  case $ended in
  "1 $job "*) ;;
  *)
    whose= at= file=$folder/{ABSENT}.$index
    [ -d "$folder" ] || file=$1/{ARRAYS}/${{folder##*/}}.{ABSENT}.$index
    {{ read -r whose at <"$file"; }} 2>/dev/null
    case $at in *[!0-9]*|'') whose= at=0 ;; esac
    if [ "$whose" != "$job" ] || [ $((now - at)) -gt {ABSENT_FORGOTTEN} ]; then
      at=$now
      {{ echo "$job $now" >"$file"; }} 2>/dev/null
    fi
    absent=$((now - at)) ;;
  esac
  case $ended in
  "1 $job 0 "*) ;;
  *)
    tail=$folder/{LOGS}/${{job}}_$index.log
    [ ! -s "$tail" ] || log=$(tail -c {LOG_TAIL_BYTES} "$tail" | base64 | tr -d '\\n') ;;
  esac
  printf '%s|%s|%s|%s|%s|%s|%s|%s\\n' \\
    $number "$ended" "$started" "$cancelled" $results $there "$absent" "$log"
  number=$((number + 1))
done
"""
