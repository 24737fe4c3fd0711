"""Commands and files on a login node: this machine itself, or one that OpenSSH reaches."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from ...errors import ConfigError, ProviderError

__all__ = ["Done", "LocalShell", "Shell", "finished", "late_words"]

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024

COMMAND_SECONDS = 60.0
FILES_SECONDS = 3600.0


@dataclass(frozen=True)
class Done:
    """What a command gave: its exit code and its two outputs, of which `err` may be cut."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it said of its failure, as one line of at most 500 characters."""
        text = " ".join((self.err.strip() or self.out.strip()).split())
        return text[:500] or f"it ended with code {self.code} and said nothing"


class Shell(Protocol):
    """A login node. `place` names it in words for a person; `here`: it is this machine.

    Every call has a timeout, in seconds. All raise `Unreachable` when nothing was begun there, and
    `ProviderError` when something may have been: what became of it is not known then.
    """

    place: str
    here: bool

    def run(
        self,
        argv: Sequence[str],
        stdin: str = "",
        timeout: float = COMMAND_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """Runs a command to its end, whatever its exit code; its words are in English."""
        ...

    def put(
        self, local: Path, remote: str, files: Sequence[str], timeout: float = FILES_SECONDS
    ) -> None:
        """Sends files and folders, by their paths in a folder here, into one that is there.

        What is there already is not sent again.
        """
        ...

    def get(
        self, remote: str, local: Path, files: Sequence[str], timeout: float = FILES_SECONDS
    ) -> None:
        """Fetches files of a folder there, by their paths in it; those that are there."""
        ...

    def remove(self, remote: str, timeout: float = FILES_SECONDS) -> None:
        """Removes a folder with all that is in it, if it is there."""
        ...


class LocalShell:
    """The login node is this machine: folders are there already, nothing is sent or fetched."""

    here = True

    def __init__(self, place: str) -> None:
        self.place = place

    def run(
        self,
        argv: Sequence[str],
        stdin: str = "",
        timeout: float = COMMAND_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """Runs a command on this machine."""
        names = {**os.environ, "LC_ALL": "C", **(env or {})}
        try:
            return finished(argv, stdin, timeout, env=names)
        except FileNotFoundError:
            return Done(127, "", f"{argv[0]}: command not found")
        except subprocess.TimeoutExpired as error:
            raise ProviderError(late_words(self.place, argv[0], timeout)) from error

    def put(
        self,
        local: Path,
        remote: str,
        files: Sequence[str],  # noqa: ARG002
        timeout: float = FILES_SECONDS,  # noqa: ARG002
    ) -> None:
        """Nothing: what is packed here is packed where the nodes see it."""
        if Path(remote) != local:
            raise ConfigError(
                f"The place {self.place} is this machine, so {local} is not copied to {remote}: "
                "tasks are to be packed in its scratch folder."
            )

    def get(
        self,
        remote: str,
        local: Path,
        files: Sequence[str],
        timeout: float = FILES_SECONDS,
    ) -> None:
        """Nothing: results are read where the nodes wrote them."""
        self.put(local, remote, files, timeout)

    def remove(self, remote: str, timeout: float = FILES_SECONDS) -> None:
        """Removes a folder of this machine."""
        done = self.run(["rm", "-rf", "--", remote], timeout=timeout)
        if done.code:
            raise ProviderError(f"{remote} could not be removed: {done.words}. Remove it yourself.")


def finished(
    argv: Sequence[str], stdin: str, timeout: float, *, env: Mapping[str, str] | None = None
) -> Done:
    """Runs a program here to its end. `TimeoutExpired` and any other error ends its children too.

    Outputs go to files, not pipes: a connection that ssh leaves open in the background may hold a
    pipe open, and its reader would wait for it.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        process = subprocess.Popen(
            list(argv),
            stdin=given,
            stdout=out,
            stderr=err,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        except BaseException:
            _end(process)
            raise
        return Done(code, _text(out, MAX_OUTPUT_BYTES), _text(err, MAX_ERROR_BYTES))


def late_words(place: str, command: str, timeout: float) -> str:
    """That a command took too long, for a person."""
    return (
        f"{place}: {command} took longer than {timeout:g} s, so what it did is not known. "
        "It is looked at again by itself."
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and its children, which have a session of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(2.0)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _text(stream: IO[bytes], at_most: int) -> str:
    stream.seek(0)
    return stream.read(at_most).decode(errors="replace")
