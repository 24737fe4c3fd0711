"""A run that sends to Slurm is killed, or its sbatch lies: no page goes twice and none is lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.engine.look import BatchView
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .cloud_runner import start
from .job_archive import Arrays, JobArchive, make_job_archive, run_all, slurm_place, values_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

KILLED = -9
PAGES = 4
POINTS = [
    "TaskBook.prepare_all:after:1",
    "SlurmPlace.submit:before:1",
    "Login.make_folders:after:1",
    "Login.submit:before:1",
    "SlurmPlace.submit:after:1",
    "TaskBook.sent:before:1",
    "TaskBook.sent:after:1",
    "SlurmPlace.results:before:1",
    "Library.land:after:1",
    "Library.compact:after:1",
    "TaskBook.landed:before:1",
    "TaskBook.landed:after:1",
    "LeftoverBook.take:after:1",
    "Login.clear:before:1",
    "Login.clear:after:1",
    "LeftoverBook.gone:before:1",
]
# Slurm says this when the controller is too busy to answer and has taken the job.
ACCEPTED = """\
#!/bin/sh
{sbatch} "$@" >/dev/null || exit
[ -e {said} ] && exit 0
touch {said}
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
"""
SLOW = """\
#!/bin/sh
{sbatch} "$@" >{answer} || exit
touch {accepted}
sleep 20
cat {answer}
"""


def an_archive(site: SlurmSite, folder: Path) -> JobArchive:
    settings = slurm_place(site, folder, pages_per_task=2)
    return make_job_archive(folder / "project", settings, pages=PAGES)


@pytest.fixture
def arrays(slurm_site: SlurmSite) -> Arrays:
    return Arrays(slurm_site)


def check(archive: JobArchive, arrays: Arrays) -> BatchView:
    """Goes on after the kill: all lands, in one array and every page worked on once.

    Nothing of it is left on scratch.
    """
    with archive.engine() as engine:
        view = run_all(engine)
        assert view.steps["area"].landed == PAGES
        assert len(values_of(engine)) == PAGES
        assert engine.ledger.tasks.open() == []
    assert set(archive.ran().values()) == {1}
    assert len(arrays) == 1
    assert scratch_files(archive) == [".arrays"]
    return view


def scratch_files(archive: JobArchive) -> list[str]:
    """What lies in the project's folder on scratch."""
    (root,) = (archive.folder.parent / "scratch").iterdir()
    return sorted(each.relative_to(root).as_posix() for each in root.rglob("*"))


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def lying_sbatch(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str, **names: Path) -> None:
    """Puts an sbatch of our own before the real one."""
    sbatch = shutil.which("sbatch")
    folder.mkdir()
    script = folder / "sbatch"
    script.write_text(text.format(sbatch=sbatch, **names))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_write_sends_one_array_and_loses_nothing(
    slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path, point: str
):
    archive = an_archive(slurm_site, tmp_path)
    assert start(archive, point).code() == KILLED
    check(archive, arrays)


def test_an_array_of_another_project_with_the_same_pages_is_not_adopted(
    slurm_site: SlurmSite, tmp_path: Path
):
    other = an_archive(slurm_site, tmp_path / "other")
    check(other, Arrays(slurm_site))
    archive = an_archive(slurm_site, tmp_path / "ours")
    arrays = Arrays(slurm_site)
    assert start(archive, "SlurmPlace.submit:before:1").code() == KILLED
    check(archive, arrays)


def test_a_kill_while_sbatch_is_being_answered_sends_one_array(
    slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = an_archive(slurm_site, tmp_path)
    names = {"answer": tmp_path / "answer", "accepted": tmp_path / "accepted"}
    with monkeypatch.context() as lying:
        lying_sbatch(lying, tmp_path / "bin", SLOW, **names)
        run = start(archive)
        until(names["accepted"].exists)
        assert run.signalled(signal.SIGKILL) == KILLED
    check(archive, arrays)


def test_an_sbatch_that_failed_though_its_job_was_accepted_is_adopted(
    slurm_site: SlurmSite, arrays: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = an_archive(slurm_site, tmp_path)
    lying_sbatch(monkeypatch, tmp_path / "bin", ACCEPTED, said=tmp_path / "said")
    check(archive, arrays)
    assert (tmp_path / "said").exists()
