"""A real Slurm with accounts: what has left the queue is told by sacct too."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.places.place import State
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .slurm_tasks import Cluster, cluster, eventually, forget_all_jobs, settled, sought

pytestmark = pytest.mark.slow


def accounts(here: Cluster) -> str:
    return here.site.ask("sacct", "-n", "-X", "-P", f"--name={here.array}", "-o", "JobID,State")


def test_how_a_task_ended_is_told_when_the_queue_has_forgotten_it(
    slurm_accounting_site: SlurmSite, tmp_path: Path
):
    site = slurm_accounting_site
    here = cluster(site, tmp_path, parallel=1)
    ids = here.send(here.place(), here.spec("a", "b-slow", "c"))
    # The first is done and the second at work: one that is cancelled in the moment of its start may
    # stay RUNNING in the accounts.
    eventually((here.task_folder(ids[1]).parent / "started.1").exists)
    for remote_id in ids:
        site.ask("scancel", remote_id.partition("/")[0])
    eventually(lambda: accounts(here).count("CANCELLED") >= 1 and "RUNNING" not in accounts(here))
    forget_all_jobs(site)
    assert here.place().find(sought(f"{here.array}_0")) == ids[0]
    settled(here.place(), ids)
    assert set(here.kinds(here.place(), ids[0]).values()) <= {"landed", "cancelled"}
    assert set(here.kinds(here.place(), ids[1]).values()) == {"cancelled"}


def test_an_array_that_left_nothing_is_found_in_the_accounts(
    slurm_accounting_site: SlurmSite, tmp_path: Path
):
    site = slurm_accounting_site
    here = cluster(site, tmp_path)
    (remote_id,) = here.send(here.place(), here.spec("a"))
    settled(here.place(), [remote_id])
    folder = here.task_folder(remote_id).parent
    for name in ("job", "started.0", "exit.0"):
        (folder / name).unlink()
    eventually(lambda: "COMPLETED" in accounts(here))
    forget_all_jobs(site)
    assert here.place().find(sought(here.array)) == remote_id
    (standing,) = settled(here.place(), [remote_id]).values()
    assert standing.state is State.ENDED
    assert here.kinds(here.place(), remote_id) == {"a": "landed"}


def test_accounts_that_do_not_answer_are_done_without(
    slurm_accounting_site: SlurmSite, tmp_path: Path
):
    site = slurm_accounting_site
    here = cluster(site, tmp_path)
    (remote_id,) = here.send(here.place(), here.spec("a"))
    settled(here.place(), [remote_id])
    site.kill("slurmdbd")
    forgotten_file = here.task_folder(remote_id).parent / "exit.0"
    assert forgotten_file.exists()
    assert here.place().statuses([remote_id])[remote_id].state is State.ENDED
    assert here.kinds(here.place(), remote_id) == {"a": "landed"}
    site.up()
