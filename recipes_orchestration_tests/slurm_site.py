"""Real Slurms of one node that the tests start themselves: one of each kind for a test process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from recipes_orchestration.rehearsal.slurm_site import (
    SlurmSite,
    SlurmSiteSettings,
    known_site,
    start_site,
    why_not_here,
)

__all__ = [
    "accounting_of_the_session",
    "quiet",
    "resume_node",
    "second_factor_of_the_session",
    "second_factor_site",
    "slurm_accounting_site",
    "slurm_of_the_session",
    "slurm_site",
    "ssh_of_the_session",
    "ssh_site",
]

PREFIX = "recipes-slurm-"


@contextmanager
def _site(**settings: object) -> Generator[SlurmSite]:
    """A site in a folder of its own, which is not under pytest's: munge must be able to enter."""
    if words := why_not_here(SlurmSiteSettings(**settings)):  # pyright: ignore[reportArgumentType]
        pytest.skip(words)
    _end_orphans()
    folder, home = (Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")) for _ in range(2))
    try:
        settings["extra"] = f"TaskProlog={_told_of(home)}"
        wanted = SlurmSiteSettings(**settings)  # pyright: ignore[reportArgumentType]
        site = start_site(folder, wanted)
        try:
            yield site
        finally:
            site.down()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def _told_of(home: Path) -> Path:
    """What tells the jobs that they are at home there, where there is no profile.

    What a person's profile does takes a while, and a login shell that is killed in the middle of it
    may leave a lock for which all later ones wait.
    """
    prolog = home / "task-prolog"
    prolog.write_text(f"#!/bin/sh\necho export HOME={home}\n")
    for each in (home, prolog):
        each.chmod(0o755)
    return prolog


def _end_orphans() -> None:
    """Ends the sites of test processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        process = folder.name.removeprefix(PREFIX).partition("-")[0]
        if process.isdigit() and not psutil.pid_exists(int(process)):
            site = known_site(folder)
            if site is not None:
                site.down()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def slurm_of_the_session() -> Iterator[SlurmSite]:
    with _site() as site:
        yield site


@pytest.fixture(scope="session")
def accounting_of_the_session() -> Iterator[SlurmSite]:
    with _site(accounting=True) as site:
        yield site


@pytest.fixture(scope="session")
def ssh_of_the_session() -> Iterator[SlurmSite]:
    with _site(login="key") as site:
        yield site


@pytest.fixture(scope="session")
def second_factor_of_the_session() -> Iterator[SlurmSite]:
    with _site(login="second-factor") as site:
        yield site


@pytest.fixture
def slurm_site(
    slurm_of_the_session: SlurmSite, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmSite]:
    """A Slurm on this machine that has no job; SLURM_CONF is set. It keeps no accounts."""
    with _for_a_test(slurm_of_the_session, monkeypatch) as site:
        yield site


@pytest.fixture
def slurm_accounting_site(
    accounting_of_the_session: SlurmSite, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmSite]:
    """The same with accounts, so that `sacct` answers."""
    with _for_a_test(accounting_of_the_session, monkeypatch) as site:
        yield site


@pytest.fixture
def ssh_site(ssh_of_the_session: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmSite]:
    """A Slurm that is reached by `ssh -F site.ssh_config mini` alone: SLURM_CONF is not set."""
    with _for_a_test(ssh_of_the_session, monkeypatch) as site:
        yield site


@pytest.fixture
def second_factor_site(
    second_factor_of_the_session: SlurmSite, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmSite]:
    """The same, but each new connection asks for a password, which `site.askpass` types."""
    with _for_a_test(second_factor_of_the_session, monkeypatch) as site:
        yield site


@contextmanager
def _for_a_test(site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> Generator[SlurmSite]:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    resume_node(site)
    if not site.settings.login:
        monkeypatch.setenv("SLURM_CONF", str(site.conf))
    try:
        yield site
    finally:
        if site.settings.login:
            site.drop_connections()
        if None in site.processes().values():
            site.up()
        quiet(site)


def resume_node(site: SlurmSite) -> None:
    """Lets the node take work again: it drains itself where the end of a job cannot be told."""
    for line in site.ask("sinfo", "-h", "-N", "-o", "%N %T").splitlines():
        node, state = line.split()
        if state.startswith("drain"):
            site.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")


def quiet(site: SlurmSite) -> None:
    """Ends all jobs of the site and waits until none is left in the queue."""
    if jobs := set(site.ask("squeue", "-h", "-o", "%A").split()):
        site.ask("scancel", "--quiet", *sorted(jobs))
    deadline = time.monotonic() + 30
    while left := site.ask("squeue", "-h", "-o", "%i %T %r"):
        if time.monotonic() > deadline:
            raise AssertionError(f"jobs do not leave the queue: {left}")
        time.sleep(0.1)
