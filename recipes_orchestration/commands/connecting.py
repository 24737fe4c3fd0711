"""The work of `recipes connect`: a person opens the connection that everything else rides on."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..engine.jobs import open_shell, open_slurm_place
from ..errors import ConfigError, NotFound, PlaceError, Refused, Unreachable
from ..job_settings import SlurmSettings
from ..ledger.database import open_ledger
from ..places.slurm.ssh_shell import SshShell
from ..project import Project, load_project
from ..project_mistakes import choose
from .output import Output

__all__ = ["connect_place", "shell_of"]

_STDERR = 2  # nothing but the one document goes to stdout


def connect_place(project: Path | None, place: str, *, as_json: bool) -> None:
    """Opens the connection of a place in this terminal, tries it, and lets the place go on.

    Raises `NotFound` and `ConfigError` for a place that has none, `PlaceError` when it was not
    opened or Slurm does not answer behind it.
    """
    output = Output(as_json=as_json)
    loaded = load_project(project)
    shell = shell_of(loaded, place)
    was_open = shell.is_open()
    if not was_open:
        _open(shell, output)
    words = _slurm_answers(loaded, shell)
    resumed, paused = _resume(loaded, place)
    output.line(f"{place} is connected{' already' if was_open else ''}: {words}")
    if resumed:
        output.line(f"{place} takes work again; what waits goes on by itself.")
    if paused is not None:
        output.line(f"{place} is still paused: {paused} Run: recipes resume {place}")
    output.document(
        {
            "place": place,
            "host": shell.host,
            "opened": not was_open,
            "slurm": words,
            "resumed": resumed,
            "paused": paused,
        }
    )


def shell_of(project: Project, place: str) -> SshShell:
    """The place's login node. Raises `NotFound` or `ConfigError` where no ssh leads to it."""
    if place not in project.places:
        raise NotFound(f'There is no place "{place}"{choose(place, project.places)}')
    settings = project.places[place]
    if not isinstance(settings, SlurmSettings):
        raise ConfigError(
            f"{place} is not reached over a connection that is opened; only a Slurm place is."
        )
    shell = open_shell(project, place)
    if not isinstance(shell, SshShell):
        raise ConfigError(
            f"{place} is this machine's own Slurm, so there is nothing to connect to. Give it a "
            "`host` in project.yaml if it is elsewhere."
        )
    return shell


def _open(shell: SshShell, output: Output) -> None:
    """Lets ssh ask in this terminal whatever it wants to know."""
    output.note(f"Connecting to {shell.host}; what is asked now is asked by ssh.")
    code = subprocess.run(shell.connect_argv(), stdout=_STDERR).returncode
    if code:
        raise Unreachable(
            f"The connection to {shell.host} was not opened: ssh ended with code {code}, and what "
            f"it said stands above. Try: ssh {shell.host}",
            connect=True,
        )


def _slurm_answers(project: Project, shell: SshShell) -> str:
    """What Slurm says in batch mode, as everything else will ask it."""
    try:
        return open_slurm_place(project, shell.place).check()
    except Refused as error:
        return str(error)  # it answers; what it would refuse is told by what is sent
    except Unreachable as error:
        raise PlaceError(
            f"{shell.host} is connected, but: {error} Try: ssh {shell.host} squeue --me"
        ) from error


def _resume(project: Project, place: str) -> tuple[bool, str | None]:
    """Whether a pause was ended, and the words of one that a connection does not end."""
    with open_ledger(project.ledger_url) as ledger:
        pause = ledger.pauses.of(place)
        if pause is None:
            return False, None
        if pause.until is None and not pause.until_reached:
            return False, pause.words
        return ledger.pauses.resume(place), None
