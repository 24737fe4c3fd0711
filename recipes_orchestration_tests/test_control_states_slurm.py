"""The table of docs/control.md on a real Slurm, all cells."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .control_jobs import Came, check, play
from .control_table import JOBS, STATES
from .job_archive import slurm_place
from .slurm_site import quiet, resume_node

pytestmark = pytest.mark.slow

# What Slurm says when its controller is too busy to answer and has taken the job.
SBATCH = """\
#!/bin/sh
[ -e {flag} ] || exec {real} "$@"
{real} "$@" >/dev/null || exit
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
"""
# A controller that is slow to do what it was told.
SCANCEL = """\
#!/bin/sh
[ -e {flag} ] || exec {real} "$@"
(while [ -e {flag} ]; do sleep 0.1; done; {real} "$@") </dev/null >/dev/null 2>&1 &
"""


@dataclass
class Slurm:
    """A site whose commands can be told to lose an answer and to be slow."""

    site: SlurmSite
    folder: Path
    place: str = "slurm"

    def settings(self, folder: Path) -> Mapping[str, Any]:
        return slurm_place(self.site, folder, mem="100M", max_open=100)

    @contextmanager
    def losing_replies(self, jobs: int) -> Generator[None]:
        with self._told("sbatch"):
            yield

    @contextmanager
    def slow_to_end(self) -> Generator[None]:
        with self._told("scancel"):
            yield

    def jobs(self) -> list[str]:
        told = self.site.ask("squeue", "-h", "-t", "all", "-o", "%A %j").splitlines()
        return [line.split()[1] for line in sorted(told, key=lambda line: int(line.split()[0]))]

    def wrap(self, command: str, script: str) -> None:
        """Puts a command of ours before the real one."""
        wrapped = self.folder / command
        flag = self.folder / f"{command}.flag"
        wrapped.write_text(script.format(flag=flag, real=shutil.which(command)))
        wrapped.chmod(0o755)

    @contextmanager
    def _told(self, command: str) -> Generator[None]:
        flag = self.folder / f"{command}.flag"
        flag.touch()
        try:
            yield
        finally:
            flag.unlink()


@pytest.fixture(scope="module")
def slurm(
    slurm_of_the_session: SlurmSite, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    site = slurm_of_the_session
    here = Slurm(site, tmp_path_factory.mktemp("bin"))
    here.wrap("sbatch", SBATCH)
    here.wrap("scancel", SCANCEL)
    resume_node(site)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SLURM_CONF", str(site.conf))
        patched.setenv("PATH", f"{here.folder}{os.pathsep}{os.environ['PATH']}")
        patched.setattr(sys, "path", list(sys.path))
        # All jobs of a state are to run at once, and most of them only wait.
        site.ask("scontrol", "update", "PartitionName=debug", "OverSubscribe=FORCE:4")
        yield here
    quiet(site)
    site.ask("scontrol", "update", "PartitionName=debug", "OverSubscribe=NO")


@pytest.fixture(scope="module", params=STATES)
def came(
    request: pytest.FixtureRequest, slurm: Slurm, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, Came]]:
    """The state, and what each decision came to in it."""
    state: str = request.param
    return state, play(slurm, tmp_path_factory.mktemp(state), state)


@pytest.mark.parametrize("decision", JOBS)
def test_a_decision_in_a_state_of_a_job(came: tuple[str, dict[str, Came]], decision: str) -> None:
    state, cells = came
    check(cells[decision], decision, state, "slurm")
    assert cells[decision].bookings == 0
