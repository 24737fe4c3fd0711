"""A login node that plain `ssh` reaches, over one shared connection.

Facts of ssh are from ssh(1) and ssh_config(5) of OpenSSH 9.2 (November 2026).
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from ...errors import ConfigError, ProviderError, Unreachable
from .files_over_ssh import get_files, put_files
from .shell import COMMAND_SECONDS, FILES_SECONDS, Done, finished, late_words

__all__ = ["SshShell", "connection_words", "needs_a_person"]

# ssh ends with it for a reason of its own (EXIT STATUS), and so may a command there: what that one
# is told as, so that the two are never taken for one another.
SSH_FAILED = 255
COMMAND_255 = 254

CONNECT_SECONDS = 20
CHECK_SECONDS = 20.0
STAYS_OPEN = "30m"

OWN_CONTROL_PATH = "~/.ssh/r-%C"
"""Where the shared connection is when the user's own configuration names no ControlPath.

A socket's path has at most 107 characters, 17 of which ssh takes for a moment, and %C has 40.
"""

_PERSON = re.compile(
    r"permission denied|host key verification failed|host identification has changed"
    r"|too many authentication failures|authentications? (methods )?(failed|that can continue)"
    r"|verification code|passphrase",
    re.IGNORECASE,
)
# What ssh says while there is no connection yet, so that no command can have begun.
_NO_CONNECTION = re.compile(
    r"could not resolve hostname|connect to (host|address) .*:|kex_exchange_identification"
    r"|during banner exchange|no route to host|network is unreachable",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(r"too long for unix domain socket|controlpath too long", re.IGNORECASE)


class SshShell:
    """A host of the user's own `~/.ssh/config`, asked by `ssh` in batch mode.

    All calls share one connection: with the user's own ControlMaster and ControlPath where they
    are set, else with ours. Where a second factor is asked for, a person opens it
    (`connect_argv`), and everything rides on it. `config` is another file than `~/.ssh/config`.
    """

    here = False

    def __init__(self, place: str, host: str, config: Path | None = None) -> None:
        self.place = place
        self.host = host
        self._config = config
        self._shared: list[str] | None = None

    def run(
        self,
        argv: Sequence[str],
        stdin: str = "",
        timeout: float = COMMAND_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """Runs a command on the host.

        The account's own shell is asked for `sh -s` alone, so that no quoting of its own gets in
        the way, and what its start files print is left out.
        """
        token = uuid4().hex
        try:
            done = finished(
                ["ssh", "-T", *self.options(), self.host, "sh -s"],
                _script(argv, stdin, token, env or {}),
                timeout,
            )
        except subprocess.TimeoutExpired as error:
            raise ProviderError(late_words(self.place, argv[0], timeout)) from error
        before, began, out = done.out.partition(token + "\n")
        if began and done.code != SSH_FAILED:
            return Done(done.code, out, done.err)
        if done.code == SSH_FAILED and (began or not _never_began(done.err)):
            raise ProviderError(
                f"{self.place}: the connection broke while {argv[0]} was asked for, so what it did "
                f"is not known: {_last_line(done.err)}. It is looked at again by itself."
            )
        if done.code == SSH_FAILED:
            raise self.failure(done.err)
        raise Unreachable(
            f"{self.place}: the account's shell on {self.host} runs no commands: "
            f"{Done(done.code, before, done.err).words}. Try: ssh {self.host} sh -c true"
        )

    def put(
        self, local: Path, remote: str, files: Sequence[str], timeout: float = FILES_SECONDS
    ) -> None:
        """Sends what is not there yet, by rsync, or by sftp where there is none."""
        put_files(self, local, remote, files, timeout)

    def get(
        self, remote: str, local: Path, files: Sequence[str], timeout: float = FILES_SECONDS
    ) -> None:
        """Fetches files by rsync, or by sftp where there is none."""
        get_files(self, remote, local, files, timeout)

    def remove(self, remote: str, timeout: float = FILES_SECONDS) -> None:
        """Removes a folder of the host."""
        done = self.run(["rm", "-rf", "--", remote], timeout=timeout)
        if done.code:
            raise ProviderError(
                f"{self.place}: {remote} could not be removed: {done.words}. Remove it yourself."
            )

    def options(self) -> list[str]:
        """What `ssh`, `sftp` and `rsync -e` are told, so that all share one connection.

        Raises `Unreachable` when this machine has no ssh, `ConfigError` when ssh does not take
        its configuration.
        """
        return [
            *("-o", "BatchMode=yes"),
            *("-o", f"ConnectTimeout={CONNECT_SECONDS}"),
            *("-o", "ServerAliveInterval=15"),
            *("-o", "ServerAliveCountMax=4"),
            *self._from_config(),
            *self._sharing(),
        ]

    def connect_argv(self) -> list[str]:
        """The command with which a person opens the shared connection and types what it asks.

        It goes into the background and stays open while it is used, and a while longer.
        """
        own = ["-o", "ControlMaster=auto", "-o", f"ControlPersist={STAYS_OPEN}"]
        persist = [] if self._sharing() else own
        return [
            *("ssh", "-T", *persist),
            *(*self._from_config(), *self._sharing(), self.host, "true"),
        ]

    def is_open(self) -> bool:
        """Whether the shared connection is open now."""
        argv = ["ssh", *self._from_config(), *self._sharing(), "-O", "check", self.host]
        try:
            return finished(argv, "", CHECK_SECONDS).code == 0
        except subprocess.TimeoutExpired:
            return False

    def failure(self, err: str) -> Unreachable | ConfigError:
        """What ssh's own failure means for a person."""
        if _TOO_LONG.search(err):
            return ConfigError(
                f"{self.place}: the path of ssh's shared connection is too long for this system. "
                f"Set a shorter ControlPath for {self.host} in your ssh configuration."
            )
        if needs_a_person(err):
            return Unreachable(connection_words(self.place), connect=True)
        return Unreachable(
            f"{self.place}: {self.host} cannot be reached: {_last_line(err)}. "
            "It is tried again by itself."
        )

    def _from_config(self) -> list[str]:
        return [] if self._config is None else ["-F", str(self._config)]

    def _sharing(self) -> list[str]:
        """A ControlPath of ours when the user's configuration names none for the host."""
        if self._shared is None:
            self._shared = []
            if not re.search(r"^controlpath (?!none$)", self._configured(), re.MULTILINE):
                Path("~/.ssh").expanduser().mkdir(mode=0o700, exist_ok=True)
                self._shared = [
                    *("-o", "ControlMaster=auto"),
                    *("-o", f"ControlPath={OWN_CONTROL_PATH}"),
                    *("-o", f"ControlPersist={STAYS_OPEN}"),
                ]
        return self._shared

    def _configured(self) -> str:
        try:
            told = finished(["ssh", *self._from_config(), "-G", self.host], "", CHECK_SECONDS)
        except FileNotFoundError as error:
            raise Unreachable(
                f"{self.place}: this machine has no ssh. Install OpenSSH's client."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise Unreachable(late_words(self.place, "ssh -G", CHECK_SECONDS)) from error
        if told.code:
            raise ConfigError(
                f"The place {self.place}: ssh does not take its configuration for {self.host}: "
                f"{told.words}. Mend it, or name another file with ssh_config."
            )
        return told.out


def needs_a_person(err: str) -> bool:
    """Whether ssh failed for want of an answer: a password, a second factor, a new host key."""
    return _PERSON.search(err) is not None


def connection_words(place: str) -> str:
    """What a person is told whose connection is gone."""
    return f"{place}: the connection is gone; type your second factor: recipes connect {place}"


def _never_began(err: str) -> bool:
    patterns = (_PERSON, _NO_CONNECTION, _TOO_LONG)
    return any(pattern.search(err) is not None for pattern in patterns)


def _script(argv: Sequence[str], stdin: str, token: str, env: Mapping[str, str]) -> str:
    """What `sh -s` is given: the command, its input, and an exit code that is never ssh's."""
    names = " ".join(f"{name}={shlex.quote(text)}" for name, text in {"LC_ALL": "C", **env}.items())
    text = stdin if not stdin or stdin.endswith("\n") else stdin + "\n"
    return (
        f"export {names}\n"
        f"echo {token}\n"
        f"{shlex.join(argv)} <<'{token}'\n{text}{token}\n"
        f"code=$?; [ $code -eq {SSH_FAILED} ] && code={COMMAND_255}; exit $code\n"
    )


def _last_line(err: str) -> str:
    lines = [line.strip() for line in err.split("\n") if line.strip()]
    return lines[-1][:300].rstrip(".") if lines else "ssh said nothing"
