"""Files to and from a host over the connection that its shell shares: by rsync, or by sftp.

rsync compares size and time first and checks what it sends by checksum; a file that was cut off
goes on where it was (rsync(1), 3.2.7). Where either side has none, sftp sends what has another
size or time, and its files get their names when their SHA-256 there is right.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ...errors import ConfigError, ProviderError, Refused, Unreachable
from .shell import Done, finished, late_words

if TYPE_CHECKING:
    from .ssh_shell import SshShell

__all__ = ["get_files", "put_files"]

_RSYNC = "rsync"
# In every folder that rsync writes into: what was cut off.
PARTIAL = ".rsync-partial"
# What sftp has not sent to its end.
PART = ".part"

# A single file that comes back is never larger.
MAX_FILE_BYTES = 4_000_000_000

_NO_RSYNC = re.compile(
    r"rsync(:|.*) (command )?not found|unknown option|unrecognized option|unexpected tag"
    r"|no such file or directory.*\(rsync\)|failed to exec",
    re.IGNORECASE,
)
_NO_FOLDER = re.compile(r"change_dir .* failed: No such file")
_NO_ROOM = re.compile(r"no space left|disk quota exceeded", re.IGNORECASE)
_LIST = r"""cd -- "$1" 2>/dev/null || exit 0; find . -type f -printf '%s %T@ %P\n'"""
_CHECK = """cd -- "$1" && sha256sum -c --quiet - >&2"""


def put_files(
    shell: SshShell, local: Path, remote: str, files: Sequence[str], timeout: float
) -> None:
    """Sends files and folders by their paths below `local`, but for those that are there.

    Raises `Unreachable` when it could not be done for a reason of the connection, `Refused` when
    there is no room; all of it may be done again.
    """
    argv = [*_rsync(shell), "--files-from=-", f"{local}/", f"{shell.host}:{remote}/"]
    done = _run(shell, argv, timeout, stdin="".join(f"{file}\n" for file in files))
    if done is None:
        _put_by_sftp(shell, local, remote, files, timeout)
    elif done.code:
        raise _error(shell, done, remote)


def get_files(
    shell: SshShell, remote: str, local: Path, files: Sequence[str], timeout: float
) -> None:
    """Fetches files by their paths below a folder; one that is not there is left out.

    Only plain files come: no link and no device.
    """
    local.mkdir(parents=True, exist_ok=True)
    argv = [
        *_rsync(shell),
        *("--files-from=-", "--ignore-missing-args", f"--max-size={MAX_FILE_BYTES}"),
        *(f"{shell.host}:{remote}/", f"{local}/"),
    ]
    done = _run(shell, argv, timeout, stdin="".join(f"{file}\n" for file in files))
    if done is None:
        _get_by_sftp(shell, remote, local, files, timeout)
    elif done.code and not _NO_FOLDER.search(done.err):
        raise _error(shell, done, remote)


def _rsync(shell: SshShell) -> list[str]:
    return [
        *(_RSYNC, "-rt", "-s", "--partial-dir", PARTIAL, "--chmod=Du+rwx,Fu+rw"),
        *("-e", shlex.join(["ssh", "-T", *shell.options()])),
    ]


def _run(shell: SshShell, argv: Sequence[str], timeout: float, stdin: str = "") -> Done | None:
    """What rsync did; None when this machine or the host has none that does it."""
    try:
        done = finished(argv, stdin, timeout)
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as error:
        raise Unreachable(late_words(shell.place, argv[0], timeout)) from error
    return None if done.code and _NO_RSYNC.search(done.err) else done


def _error(shell: SshShell, done: Done, remote: str) -> ProviderError | ConfigError:
    if _NO_ROOM.search(done.err):
        return Refused(
            f"{shell.place}: there is no room in {remote}: {done.words}. Make room there.",
            account=True,
        )
    if done.code in (10, 12, 20, 30, 35, 255):  # socket, stream, signal, timeouts, ssh's own
        return shell.failure(done.err)
    return ProviderError(
        f"{shell.place}: files could not be copied to or from {remote}: {done.words}."
    )


def _put_by_sftp(
    shell: SshShell, local: Path, remote: str, files: Sequence[str], timeout: float
) -> None:
    there = _listed(shell, remote)
    wanted = _to_send(local, files, there)
    if not wanted:
        return
    folders = sorted({str(each) for path in wanted for each in PurePosixPath(path).parents} - {"."})
    commands = [f"-mkdir {_quoted(f'{remote}/{folder}')}" for folder in folders]
    for path in wanted:
        part = f"{path}{PART}"
        resumes = there.get(part, (0, 0))[0] in range(1, (local / path).stat().st_size)
        verb = "reput" if resumes else "put"
        commands.append(f"{verb} -p {_quoted(str(local / path))} {_quoted(f'{remote}/{part}')}")
    _sftp(shell, commands, remote, timeout)
    sums = "".join(f"{_sha256(local / path)}  {path}{PART}\n" for path in wanted)
    checked = shell.run(["sh", "-c", _CHECK, "sh", remote], sums, timeout)
    if checked.code:
        shell.run(["sh", "-c", f'cd -- "$1" && find . -name "*{PART}" -delete', "sh", remote])
        raise Unreachable(
            f"{shell.place}: files came to {remote} otherwise than they were sent: "
            f"{checked.words}. They are sent again by themselves."
        )
    _sftp(
        shell,
        [
            f"rename {_quoted(f'{remote}/{path}{PART}')} {_quoted(f'{remote}/{path}')}"
            for path in wanted
        ],
        remote,
        timeout,
    )


def _get_by_sftp(
    shell: SshShell, remote: str, local: Path, files: Sequence[str], timeout: float
) -> None:
    there = _listed(shell, remote)
    commands: list[str] = []
    for file in files:
        if file in there and there[file][0] <= MAX_FILE_BYTES:
            (local / file).parent.mkdir(parents=True, exist_ok=True)
            commands.append(f"get -p {_quoted(f'{remote}/{file}')} {_quoted(str(local / file))}")
    if commands:
        _sftp(shell, commands, remote, timeout)


def _to_send(local: Path, files: Sequence[str], there: Mapping[str, tuple[int, int]]) -> list[str]:
    """The files that are not there with their size and time, each once; those of folders too."""
    wanted: dict[str, None] = {}
    for file in files:
        path = local / file
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            status, name = each.stat(), each.relative_to(local).as_posix()
            if each.is_file() and there.get(name) != (status.st_size, int(status.st_mtime)):
                wanted[name] = None
    return list(wanted)


def _listed(shell: SshShell, remote: str) -> dict[str, tuple[int, int]]:
    """Size and time of each file of a folder, by its path in it."""
    done = shell.run(["sh", "-c", _LIST, "sh", remote])
    found: dict[str, tuple[int, int]] = {}
    for line in done.out.split("\n"):
        size, _, rest = line.partition(" ")
        time, _, path = rest.partition(" ")
        if size.isdigit() and path:
            found[path] = (int(size), int(time.partition(".")[0] or 0))
    return found


def _sftp(shell: SshShell, commands: Iterable[str], remote: str, timeout: float) -> None:
    argv = ["sftp", "-q", *shell.options(), "-b", "-", shell.host]
    try:
        done = finished(argv, "".join(f"{command}\n" for command in commands), timeout)
    except FileNotFoundError as error:
        raise Unreachable(
            f"{shell.place}: this machine has neither rsync nor sftp. Install rsync."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(late_words(shell.place, "sftp", timeout)) from error
    if done.code:
        raise _error(shell, Done(255 if done.code == 255 else 1, done.out, done.err), remote)


def _quoted(path: str) -> str:
    """A path as one word of an sftp batch, none of it a pattern."""
    escaped = re.sub(r'(["\\*?\[])', r"\\\1", path)
    return f'"{escaped}"'


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
