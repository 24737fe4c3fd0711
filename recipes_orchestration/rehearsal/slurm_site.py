"""A real Slurm of one node on loopback, with an sshd before it where one is wanted.

It is started from Debian's packages by the scripts in `slurm/`, needs root, and keeps everything in
one folder, so that several run side by side. `site.json` in it says how it was started: started
again, after a kill too, it has the ports that its clients know.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ..errors import ConfigError, PlaceError

__all__ = [
    "HOST",
    "LOGINS",
    "PACKAGES",
    "SlurmSite",
    "SlurmSiteSettings",
    "known_site",
    "start_site",
    "why_not_here",
]

HOST = "mini"
"""What the login node is called in the site's ssh configuration."""

PACKAGES = (
    "slurmctld slurmd slurm-client munge slurmdbd mariadb-server "
    "openssh-server openssh-client rsync"
)
"""Debian's packages for all that a site can have."""

_SCRIPTS = Path(__file__).parent / "slurm"
_SETTINGS_FILE = "site.json"
_SLURM = ("slurmctld", "slurmd", "sbatch", "squeue", "munged", "runuser")
_ACCOUNTING = ("slurmdbd", "sacctmgr", "sacct", "mariadbd")
_LOGIN = ("sshd", "ssh", "ssh-keygen", "rsync")
# Below the ports that the kernel gives to outgoing connections (32768 and up), so that none of
# those takes a daemon's port while it is started anew.
_PORTS = range(20_000, 32_000)
_SECONDS = 150.0  # the scripts give up by themselves long before

LOGINS = ("", "key", "second-factor")
"""How one gets to a site: only on this machine, by ssh, or by ssh and a second factor."""


@dataclass(frozen=True)
class SlurmSiteSettings:
    """How a site is started.

    `memory_mb` is what the node says it has, `min_job_age` how many seconds Slurm remembers a job
    that has ended, `enforce` and `extra` are AccountingStorageEnforce and more lines of slurm.conf.
    """

    accounting: bool = False
    login: str = ""
    cpus: int = 4
    memory_mb: int = 8000
    min_job_age: int = 300
    enforce: str = ""
    extra: str = ""

    @property
    def programs(self) -> tuple[str, ...]:
        """What must be installed for it."""
        return (
            *_SLURM,
            *(_ACCOUNTING if self.accounting else ()),
            *(_LOGIN if self.login else ()),
        )


@dataclass(frozen=True)
class SlurmSite:
    """A site in its folder, running or not."""

    folder: Path
    settings: SlurmSiteSettings
    ports: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def conf(self) -> Path:
        """Its slurm.conf."""
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """What a client on this machine needs in its environment."""
        return {"SLURM_CONF": str(self.conf)}

    @property
    def ssh_config(self) -> Path | None:
        """An ssh configuration that knows `HOST`; None for a site without a login."""
        return self.folder / "ssh" / "config" if self.settings.login else None

    @property
    def home(self) -> Path:
        """A folder for what users keep; the second factor's account is at home there."""
        return self.folder / "ssh" / "home" if self.settings.login else self.folder / "home"

    @property
    def password_file(self) -> Path:
        """The second factor."""
        return self.folder / "ssh" / "password"

    @property
    def askpass(self) -> Path:
        """A program that types the second factor: SSH_ASKPASS, with SSH_ASKPASS_REQUIRE=force."""
        return self.folder / "ssh" / "askpass"

    def up(self) -> None:
        """Starts what is not running. Raises `PlaceError` with what went wrong."""
        self._script("minislurm.sh", "up")
        if self.settings.login:
            self._script("minissh.sh", "up")
        self.home.mkdir(exist_ok=True)

    def down(self) -> None:
        """Ends its jobs and every process of it; the folder stays."""
        self._script("minissh.sh", "down")
        self._script("minislurm.sh", "down")

    def drop_connections(self) -> None:
        """Ends every open ssh connection, as a lost network does."""
        self._script("minissh.sh", "drop")

    def kill(self, daemon: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Kills one of `processes`, without a word to it; `up` mends it."""
        process = self.processes()[daemon]
        if process is not None:
            os.kill(process, number)

    def processes(self) -> dict[str, int | None]:
        """The site's daemons and their process ids, None for one that is not running."""
        told = self._run("minislurm.sh", "status").stdout
        if self.settings.login:
            told += self._run("minissh.sh", "status").stdout
        found = [line.split() for line in told.splitlines()]
        return {name: None if pid == "-" else int(pid) for name, pid in found}

    def ask(self, *command: str, seconds: float = 30) -> str:
        """What one of Slurm's own commands prints on this machine. Raises `PlaceError`."""
        done = subprocess.run(
            command,
            env=self._clean() | self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if done.returncode:
            raise PlaceError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def _script(self, script: str, word: str) -> None:
        try:
            done = self._run(script, word)
        except subprocess.TimeoutExpired as error:
            raise PlaceError(
                f"The Slurm in {self.folder} did not answer within {_SECONDS:.0f} s. "
                f"Look into {self.folder / 'log'}."
            ) from error
        if done.returncode:
            words = " ".join(done.stderr.split()) or f"{script} ended with {done.returncode}"
            raise PlaceError(f"The Slurm in {self.folder} is not {word}: {words}")

    def _run(self, script: str, word: str) -> subprocess.CompletedProcess[str]:
        settings = self.settings
        given = {
            "CTLPORT": self.ports["slurmctld"],
            "DPORT": self.ports["slurmd"],
            "DBD": int(settings.accounting),
            "DBDPORT": self.ports["slurmdbd"],
            "SQLPORT": self.ports["mariadbd"],
            "PORT": self.ports["sshd"],
            "SECOND": int(settings.login == "second-factor"),
            "LOGIN": "root",
            "CPUS": settings.cpus,
            "MEM": settings.memory_mb,
            "MINJOBAGE": settings.min_job_age,
            "ENFORCE": settings.enforce,
            "EXTRA_CONF": settings.extra,
            "EXTRA_PART": "",
        }
        return subprocess.run(
            ["bash", _SCRIPTS / script, word, self.folder],
            env=self._clean() | {name: str(value) for name, value in given.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )

    @staticmethod
    def _clean() -> dict[str, str]:
        """The environment without what belongs to another Slurm."""
        ours = ("SLURM", "SBATCH", "SQUEUE", "SCANCEL", "SINFO", "SACCT")
        return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def why_not_here(settings: SlurmSiteSettings) -> str | None:
    """Why this machine cannot have such a site, in a sentence; None when it can."""
    if not sys.platform.startswith("linux"):
        return "A Slurm of one's own needs Linux."
    if os.geteuid() != 0:
        return "A Slurm of one's own can only be started by root."
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    if missing := [name for name in settings.programs if shutil.which(name, path=path) is None]:
        return (
            f"Not installed: {', '.join(missing)}. "
            f"Run: apt-get install -y --no-install-recommends {PACKAGES}"
        )
    return None


def start_site(folder: Path, settings: SlurmSiteSettings | None = None) -> SlurmSite:
    """Starts a site in the folder, or mends the one that is there; about one second.

    With accounting it takes about ten. One that was started otherwise is ended first. Raises
    `ConfigError` when this machine cannot have one, `PlaceError` when it did not start.
    """
    settings = settings or SlurmSiteSettings()
    if settings.login not in LOGINS:
        raise ConfigError(f'There is no login "{settings.login}": take key or second-factor.')
    if words := why_not_here(settings):
        raise ConfigError(words)
    folder = folder.absolute()
    known = known_site(folder)
    if known is None and folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} holds something else. Take an empty folder for a Slurm.")
    if known is not None and known.settings != settings:
        known.down()
        known = replace(known, settings=settings)
    tries = 1 if known is not None else 5
    while True:
        tries -= 1
        site = known or SlurmSite(folder, settings, _free_ports())
        _keep(site)
        try:
            site.up()
        except PlaceError as error:
            site.down()
            # Between looking for a free port and taking it, somebody else may have taken it.
            if tries and "already in use" in str(error):
                continue
            raise
        return site


def known_site(folder: Path) -> SlurmSite | None:
    """The site that was started in the folder, whether it runs or not; None where there is none."""
    folder = folder.absolute()
    try:
        told = json.loads((folder / _SETTINGS_FILE).read_bytes())
        return SlurmSite(folder, SlurmSiteSettings(**told["settings"]), told["ports"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{folder / _SETTINGS_FILE} does not say how a Slurm was started. Remove {folder}."
        ) from error


def _keep(site: SlurmSite) -> None:
    site.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    # The users of the site, munge among them, must be able to enter it whatever the umask.
    site.folder.chmod(0o755)
    told = {"settings": asdict(site.settings), "ports": dict(site.ports)}
    part = site.folder / f"{_SETTINGS_FILE}.new"
    part.write_text(json.dumps(told, indent=2) + "\n")
    part.replace(site.folder / _SETTINGS_FILE)


def _free_ports() -> dict[str, int]:
    names = ("slurmctld", "slurmd", "slurmdbd", "mariadbd", "sshd")
    free: list[int] = []
    for port in random.sample(_PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        free.append(port)
        if len(free) == len(names):
            return dict(zip(names, free, strict=True))
    raise PlaceError("No five ports between 20000 and 32000 are free on 127.0.0.1. End something.")
