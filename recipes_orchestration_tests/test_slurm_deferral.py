"""Runs of the real `dagster dev` that wait for a real Slurm: killed, stopped, and overtaken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.run_tags import STOPPED
from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .command_runs import recipes
from .job_archive import Arrays, JobArchive, make_job_archive, slurm_place
from .waiting_site import Site, open_site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

KILL = [f"kill/{batch}/{page}.png" for batch in "ab" for page in ("1", "slow")]
STOP = [f"stop/{page}.png" for page in ("1", "2", "slow1", "slow2", "slow3", "slow4")]
PIPE = ["pipe/a/1.png", "pipe/a/2.png", "pipe/b/slow1.png", "pipe/b/slow2.png"]


@dataclass(frozen=True)
class Cluster:
    """A project with a `dagster dev` over it and the arrays that it sent to its Slurm."""

    site: Site
    archive: JobArchive
    slurm: SlurmSite
    arrays: Arrays

    def landed(self, step: str, batch: str) -> int:
        with open_engine(self.archive.project()) as engine:
            return len(engine.library.landed("letters", step, batch))

    def begun(self) -> Counter[str]:
        """How often each slow page was begun."""
        return Counter(page for page, _ in self.archive.at())


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, slurm_of_the_session: SlurmSite
) -> Iterator[tuple[Site, JobArchive]]:
    folder = tmp_path_factory.mktemp("cluster")
    place = slurm_place(slurm_of_the_session, folder, pages_per_task=2, parallel=1)
    archive = make_job_archive(folder / "project", place, [*KILL, *STOP, *PIPE])
    assert recipes(archive, "discover").code == 0
    environment = slurm_of_the_session.environment
    with open_site(archive, None, folder, environment, "letters") as site:
        yield site, archive


@pytest.fixture
def cluster(shared: tuple[Site, JobArchive], slurm_site: SlurmSite) -> Cluster:
    site, archive = shared
    for name in ("go", "at.log", "ran.log"):
        (archive.folder / name).unlink(missing_ok=True)
    return Cluster(site, archive, slurm_site, Arrays(slurm_site))


def test_local_steps_of_one_batch_run_while_the_array_of_the_next_is_open(cluster: Cluster):
    site = cluster.site
    backfill = site.backfill("pipe")
    site.until(lambda: cluster.landed("words", "pipe/a/0001") == 2)
    assert cluster.landed("size", "pipe/b/0001") == 0
    site.until(cluster.begun)
    (waiting,) = site.until(lambda: site.waiting(backfill))
    assert waiting.tags["dagster/partition"] == "pipe/b/0001"
    cluster.archive.go()
    assert site.ended(backfill) == "COMPLETED_SUCCESS"
    assert cluster.landed("words", "pipe/b/0001") == 2
    assert set(cluster.archive.ran().values()) == {1}


def test_a_queued_continuation_cancelled_in_the_ui_cancels_the_array(cluster: Cluster):
    site = cluster.site
    backfill = site.backfill("stop")
    (waiting,) = site.all_waiting(backfill, 1)
    site.until(cluster.begun)
    site.terminate(waiting)
    assert site.ended(backfill) == "COMPLETED_FAILED"

    def told() -> str:
        (run,) = [run for run in site.runs(backfill) if run.id == waiting.id]
        said = run.tags.get(STOPPED, "")
        return said if said.startswith("Stopped") else ""

    # One element had ended, one ran, and one waited.
    assert site.until(told) == (
        "Stopped: 2 of 6 pages through area at slurm, 2 of 6 pages through size at slurm; nothing "
        "read is lost."
    )
    assert cluster.slurm.ask("squeue", "-h", "-t", "PD,R", "-o", "%i") == ""
    (name,) = cluster.arrays.names
    states = cluster.slurm.ask("squeue", "-h", "-r", "-t", "all", "-n", name, "-o", "%T")
    assert Counter(states.split()) == Counter(COMPLETED=1, CANCELLED=2)
    assert cluster.landed("area", "stop/0001") == 2
    assert cluster.begun() == {"stop/slow1.png": 1}
    assert len(cluster.arrays) == 1
    with open_engine(cluster.archive.project()) as engine:
        assert engine.ledger.tasks.open() == []
        assert engine.ledger.holds.attempts_of("letters", "letters", "stop/0001") == {}


def test_dagster_may_be_killed_in_the_middle_and_started_anew(cluster: Cluster):
    site = cluster.site
    backfill = site.backfill("kill")

    def in_the_middle() -> bool:
        at_work = any(run.status == "STARTED" for run in site.runs(backfill))
        return bool(at_work and len(cluster.arrays))

    site.until(in_the_middle)
    site.kill()
    site.all_waiting(backfill, 2)
    site.until(lambda: len(cluster.begun()) == 2)
    cluster.archive.go()
    assert site.ended(backfill) == "COMPLETED_SUCCESS"
    assert len(cluster.arrays) == 2
    assert set(cluster.archive.ran().values()) == {1}
    assert len(cluster.archive.ran()) == len(KILL) * 3
    assert set(cluster.begun().values()) == {1}
    for batch in "ab":
        assert cluster.landed("words", f"kill/{batch}/0001") == 2
