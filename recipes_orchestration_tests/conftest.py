"""Fixtures that several test files share."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from .discovery_scans import reads, scans
from .hub_fixtures import hub, hub_api, hub_server
from .ledger_fixtures import ledger, ledger_url
from .postgres_server import postgres_server, postgres_url
from .rehearsal_fixtures import rehearsal, rehearsal_server
from .slurm_site import (
    accounting_of_the_session,
    second_factor_of_the_session,
    second_factor_site,
    slurm_accounting_site,
    slurm_of_the_session,
    slurm_site,
    ssh_of_the_session,
    ssh_site,
)

__all__ = [
    "accounting_of_the_session",
    "hub",
    "hub_api",
    "hub_server",
    "ledger",
    "ledger_url",
    "postgres_server",
    "postgres_url",
    "reads",
    "rehearsal",
    "rehearsal_server",
    "scans",
    "second_factor_of_the_session",
    "second_factor_site",
    "slurm_accounting_site",
    "slurm_of_the_session",
    "slurm_site",
    "ssh_of_the_session",
    "ssh_site",
]


DAGSTERS = (
    ("deferral_dagster", "consent_dagster", "ui_stop", "slurm_deferral", "docs_downstream"),
    ("command_backfill", "slurm_dagster", "hf_dagster", "stopped_run", "ui_backfill"),
)
"""Files that start a whole Dagster, which takes a processor: those of a row one after another."""
LONGEST = (
    *(name for row in DAGSTERS for name in row),
    *("slurm_ends", "slurm_stages", "slurm_kills", "control_states_slurm", "deferral"),
    *("control_states_hf_jobs", "hf_kills", "cloud_kills", "spend_histories", "kills"),
    *("cloud_interleavings", "real_pages", "runner_install", "nasty_run", "postgres_storage"),
)
"""Files of tests that take minutes. They begin first, so that no worker ends the run alone."""


ROWS = {f"test_{name}": f"dagster-{row}" for row, names in enumerate(DAGSTERS) for name in names}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first."""
    places = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


class ByFile(LoadScopeScheduling):
    """Gives each worker a file after the other, or a row of files."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0]).stem
        return ROWS.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """What shares the tests out when several run at a time."""
    return ByFile(config, log)


class ToldAtOnce:
    """Prints each failure when it happens, so that a run which is ended early has told it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            out = self.config.get_terminal_writer()
            out.line()
            out.sep("_", f"{report.nodeid} ({report.when})")
            out.line(report.longreprtext)


def pytest_configure(config: pytest.Config) -> None:
    """Tells failures at once where test files are shared out; one process tells them at the end."""
    if config.getoption("dist") != "no":
        config.pluginmanager.register(ToldAtOnce(config))


@pytest.fixture(scope="session", autouse=True)
def no_other_machine() -> Iterator[None]:
    """Refuses every connection of this process that is not to a server of this machine."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def check(door: socket.socket, address: Any) -> None:
        if door.family not in (socket.AF_INET, socket.AF_INET6):
            return
        host = str(address[0])
        if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
            raise PermissionError(f"tests may speak to this machine alone, not to {host}")

    def checked(door: socket.socket, address: Any) -> None:
        check(door, address)
        connect(door, address)

    def checked_ex(door: socket.socket, address: Any) -> int:
        check(door, address)
        return connect_ex(door, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", checked)
        patch.setattr(socket.socket, "connect_ex", checked_ex)
        yield


@pytest.fixture
def restored_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undoes what loading a project does to `sys.path`, and hides the project of the shell."""
    for name in ("RECIPES_PROJECT", "RECIPES_LEDGER_URL"):
        monkeypatch.delenv(name, raising=False)
    before = list(sys.path)
    yield
    sys.path[:] = before
