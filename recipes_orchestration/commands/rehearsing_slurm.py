"""The work of `recipes rehearse-slurm`: a Slurm of one's own, started, ended and looked at."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

from ..errors import NotFound
from ..rehearsal.slurm_site import (
    HOST,
    SlurmSite,
    SlurmSiteSettings,
    known_site,
    start_site,
)
from .output import Output

__all__ = ["DEFAULT_FOLDER", "end_slurm", "show_slurm", "start_slurm"]

DEFAULT_FOLDER = Path("/var/lib/recipes-slurm")
"""All users may enter it, as Slurm's own must, and only root may make it."""


def start_slurm(folder: Path, *, login: str, accounting: bool, as_json: bool) -> None:
    """Starts it and prints how a shell finds it; the entry for a project goes to stderr."""
    output = Output(as_json=as_json)
    site = start_site(folder, SlurmSiteSettings(accounting=accounting, login=login))
    _tell(site, output)


def end_slurm(folder: Path, *, as_json: bool) -> None:
    """Ends its jobs and its processes. Raises `NotFound` where none was started."""
    output = Output(as_json=as_json)
    site = _site(folder)
    site.down()
    output.line(f"The Slurm in {site.folder} is down. Its logs stay; remove the folder for good.")
    output.document(_document(site))


def show_slurm(folder: Path, *, as_json: bool) -> None:
    """Prints what runs of it, and how it is found. Raises `NotFound` where none was started."""
    _tell(_site(folder), Output(as_json=as_json))


def _site(folder: Path) -> SlurmSite:
    site = known_site(folder)
    if site is None:
        raise NotFound(
            f"No Slurm was started in {folder}. Run: recipes rehearse-slurm up --folder "
            f"{shlex.quote(str(folder))}"
        )
    return site


def _tell(site: SlurmSite, output: Output) -> None:
    for name, process in site.processes().items():
        output.line(f"# {name}: {f'process {process}' if process else 'not running'}")
    for name, value in site.environment.items():
        output.line(f"export {name}={shlex.quote(value)}")
    if site.ssh_config is not None:
        output.line(f"# log in: ssh -F {shlex.quote(str(site.ssh_config))} {HOST}")
    if site.settings.login == "second-factor":
        output.line(f"# the second factor: cat {shlex.quote(str(site.password_file))}")
    folder = shlex.quote(str(site.folder))
    output.line(f"# its end: recipes rehearse-slurm down --folder {folder}")
    if not output.as_json:
        # Not to stdout, which a shell may evaluate.
        entry = yaml.safe_dump({"places": {"cluster": _place(site)}}, sort_keys=False)
        output.note(f"For project.yaml:\n{entry.rstrip()}")
    output.document(_document(site))


def _place(site: SlurmSite) -> dict[str, Any]:
    """The entry of `places:` that leads to it."""
    runner = Path(sys.executable).parent / "recipes-runner"
    reached: dict[str, Any] = {}
    if site.ssh_config is not None:
        reached = {"host": HOST, "ssh_config": str(site.ssh_config)}
    return {
        "kind": "slurm",
        **reached,
        "scratch": str(site.home / "recipes"),
        "runner": str(runner),
    }


def _document(site: SlurmSite) -> dict[str, Any]:
    processes = site.processes()
    second = site.settings.login == "second-factor"
    return {
        "folder": str(site.folder),
        "running": None not in processes.values(),
        "processes": processes,
        "environment": site.environment,
        "accounting": site.settings.accounting,
        "ssh_config": None if site.ssh_config is None else str(site.ssh_config),
        "host": None if site.ssh_config is None else HOST,
        "password_file": str(site.password_file) if second else None,
        "places": {"cluster": _place(site)},
    }
