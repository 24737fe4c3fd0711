"""What Slurm accepted though its answer was lost is found by its name and never sent twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes_orchestration.errors import InDoubt, ProviderError, Refused, Unreachable
from recipes_orchestration.places.place import State
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .slurm_tasks import cluster, settled, sought

LOST = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


@pytest.fixture
def wrapped(
    slurm_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder that comes first in PATH, until the site is made quiet again."""
    folder = tmp_path / "bin"
    folder.mkdir()
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield folder


def wrap(folder: Path, command: str, before: str = "", after: str = "") -> None:
    """A command that does more than the real one."""
    real = shutil.which(command, path=os.environ["PATH"].partition(os.pathsep)[2])
    (folder / command).write_text(f'#!/bin/sh\n{before}\n{real} "$@"\n{after}\n')
    (folder / command).chmod(0o755)


def test_sbatch_that_fails_though_it_was_accepted_is_adopted(
    slurm_site: SlurmSite, tmp_path: Path, wrapped: Path
):
    here = cluster(slurm_site, tmp_path)
    wrap(wrapped, "sbatch", after=f'echo "{LOST}" >&2; exit 1')
    with pytest.raises(ProviderError, match="Socket timed out") as lost:
        here.send(here.place(), here.spec("a", "b", "c"))
    assert not isinstance(lost.value, Refused | Unreachable | InDoubt)
    place = here.place()
    found = [place.find(sought(f"{here.array}_{index}")) for index in (0, 1)]
    ids = [each for each in found if each is not None]
    assert len(ids) == 2
    settled(place, ids)
    assert here.kinds(place, ids[0]) | here.kinds(place, ids[1]) == dict.fromkeys("abc", "landed")
    assert here.jobs() == ["0 COMPLETED", "1 COMPLETED"]


def test_sbatch_that_was_never_answered_and_never_accepted_is_not_found(
    slurm_site: SlurmSite, tmp_path: Path, wrapped: Path
):
    here = cluster(slurm_site, tmp_path)
    wrap(wrapped, "sbatch", before=f'echo "{LOST}" >&2; exit 1')
    with pytest.raises(ProviderError, match="asked for the job by its name"):
        here.send(here.place(), here.spec("a"))
    assert here.place().find(sought(here.array)) is None
    (wrapped / "sbatch").unlink()
    (remote_id,) = here.send(here.place(), here.spec("a"))
    settled(here.place(), [remote_id])
    assert here.kinds(here.place(), remote_id) == {"a": "landed"}


@pytest.mark.slow
def test_a_real_controller_that_answers_too_late_is_asked_by_name(
    slurm_site: SlurmSite, tmp_path: Path, wrapped: Path
):
    """Stopped for a while, it accepts what it was sent meanwhile; sbatch gave up before."""
    here = cluster(slurm_site, tmp_path)
    controller = slurm_site.processes()["slurmctld"]
    wrap(
        wrapped,
        "sbatch",
        before=f"kill -STOP {controller}; (sleep 12; kill -CONT {controller}) >/dev/null 2>&1 &",
    )
    with pytest.raises(ProviderError, match="Socket timed out"):
        here.send(here.place(), here.spec("a"))
    settled_id = None
    for _ in range(3):
        settled_id = settled_id or here.place().find(sought(here.array))
    assert settled_id is not None
    settled(here.place(), [settled_id])
    assert here.kinds(here.place(), settled_id) == {"a": "landed"}
    assert here.jobs() == ["0 COMPLETED"]


def test_no_slots_left_in_the_account_is_tried_again_by_itself(
    slurm_site: SlurmSite, tmp_path: Path, wrapped: Path
):
    here = cluster(slurm_site, tmp_path)
    words = (
        "sbatch: error: AssocMaxSubmitJobLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy "
        "(job submit limit, user's size and/or time limits)"
    )
    wrap(wrapped, "sbatch", before=f'echo "{words}" >&2; exit 1')
    with pytest.raises(Refused, match="takes no more of your jobs") as refused:
        here.send(here.place(), here.spec("a"))
    assert refused.value.account
    assert refused.value.retry_after == 300


def test_a_queue_that_does_not_answer_is_no_end_and_no_absence(
    slurm_site: SlurmSite, tmp_path: Path, wrapped: Path
):
    here = cluster(slurm_site, tmp_path)
    (remote_id,) = here.send(here.place(), here.spec("a"))
    settled(here.place(), [remote_id])
    wrap(wrapped, "squeue", before='echo "slurm_load_jobs error: Unable to contact" >&2; exit 1')
    with pytest.raises(Unreachable, match="Slurm does not answer"):
        here.place().statuses([remote_id])
    with pytest.raises(Unreachable, match="Slurm does not answer"):
        here.place().find(sought(here.array))


def test_a_users_own_settings_of_squeue_change_nothing(
    slurm_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = cluster(slurm_site, tmp_path, extra=("--hold",))
    (remote_id,) = here.send(here.place(), here.spec("a"))
    with monkeypatch.context() as patched:
        patched.setenv("SQUEUE_PARTITION", "another")
        patched.setenv("SQUEUE_FORMAT", "%i")
        assert here.place().statuses([remote_id])[remote_id].state is State.RUNNING
        assert here.place().find(sought(here.array)) == remote_id
