"""Runs of the real `dagster dev` that wait for jobs of the rehearsed hub; one is stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.run_tags import STOPPED, TASK
from recipes_orchestration.rehearsal import HUB, HubScript, Rehearsal
from recipes_orchestration.rehearsal.hub_runs import Job

from .command_runs import recipes
from .hub_archive import creates, far_files, hub_archive
from .job_archive import JobArchive
from .waiting_site import Site, open_site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

PAGES, PER_TASK, MAX_OPEN = 6, 3, 2
# All wait until the test lets them go on, so that all there is to send has been sent.
RUN = [f"run/{folder}/slow{page}.png" for folder in "ab" for page in range(PAGES)]
# The first job ends, the second one comes to its second page.
STOP = [f"stop/{page}.png" for page in ("1", "2", "3", "4", "slow1", "slow2")]


@dataclass(frozen=True)
class HubSite:
    """A project with a `dagster dev` over it, and the hub that has its jobs."""

    site: Site
    archive: JobArchive
    hub: Rehearsal

    @property
    def jobs(self) -> list[Job]:
        """In the order in which they came."""
        return list(self.hub.hub.jobs.values())

    def landed(self, step: str, batch: str) -> int:
        with open_engine(self.archive.project()) as engine:
            return len(engine.library.landed("letters", step, batch))

    def most_open(self) -> int:
        """How many jobs were open at the same time, by the hub's own times."""
        changes = [(job.created, 1) for job in self.jobs]
        changes += [(job.ended, -1) for job in self.jobs if job.ended is not None]
        at_once = most = 0
        for _, change in sorted(changes):
            at_once += change
            most = max(most, at_once)
        return most


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, hub_server: Rehearsal
) -> Iterator[tuple[Site, JobArchive]]:
    folder = tmp_path_factory.mktemp("hub")
    settings = {"pages_per_task": PER_TASK, "max_open": MAX_OPEN}
    archive = hub_archive(folder, hub_server, [*RUN, *STOP], **settings)
    assert recipes(archive, "discover").code == 0
    with open_site(archive, hub_server, folder, {}, "letters") as site:
        yield site, archive


@pytest.fixture
def there(shared: tuple[Site, JobArchive], hub: Rehearsal) -> HubSite:
    site, archive = shared
    for name in ("go", "at.log", "ran.log", "loaded.log"):
        (archive.folder / name).unlink(missing_ok=True)
    return HubSite(site, archive, hub)


def test_while_jobs_run_there_is_no_process_here_and_then_all_is_done(there: HubSite):
    site = there.site
    assert site.dev
    launched = time.time()
    backfill = site.backfill("run")
    waiting = site.all_waiting(backfill, 2)
    site.no_run_process_since(launched)
    assert site.status(backfill) == "REQUESTED"
    # One batch has its jobs and the other one waits for a slot.
    assert creates(there.hub) == MAX_OPEN
    told = sorted(run.tags.get(TASK, "") for run in waiting)
    assert told[0] == ""
    assert set(told[1].split(", ")) == {job.id for job in there.jobs}
    assert len(far_files(there.hub, ".png")) == PAGES
    there.archive.go()
    assert site.ended(backfill) == "COMPLETED_SUCCESS"
    assert creates(there.hub) == len(RUN) // PER_TASK
    assert there.most_open() <= MAX_OPEN
    assert set(there.archive.ran().values()) == {1}
    assert len(there.archive.ran()) == len(RUN) * 3
    assert len(there.archive.loads()) == len(RUN) // PER_TASK
    for batch in ("run/a/0001", "run/b/0001"):
        assert there.landed("words", batch) == PAGES
    assert far_files(there.hub) == {}


def test_a_queued_continuation_cancelled_in_the_ui_cancels_the_job(there: HubSite):
    # A job that is ended has time to put back what it has.
    there.hub.script(HUB, HubScript(grace_seconds=60))
    site = there.site
    backfill = site.backfill("stop")
    (waiting,) = site.all_waiting(backfill, 1)
    site.until(there.archive.at)
    # The job beside it has ended; what it wrote may have landed and gone from the hub by now.
    site.until(
        lambda: far_files(there.hub, "/out/outcome.json") or there.landed("size", "stop/0001")
    )
    site.terminate(waiting)
    assert site.ended(backfill) == "COMPLETED_FAILED"

    def told() -> str:
        (run,) = [run for run in site.runs(backfill) if run.id == waiting.id]
        said = run.tags.get(STOPPED, "")
        return said if said.startswith("Stopped") else ""

    assert site.until(told) == (
        "Stopped: 3 of 6 pages through area at hf_jobs, 4 of 6 pages through size at hf_jobs; "
        "nothing read is lost."
    )
    assert there.landed("size", "stop/0001") == 4
    with open_engine(there.archive.project()) as engine:
        assert engine.ledger.tasks.open() == []
    assert Counter(job.stage for job in there.jobs) == Counter(COMPLETED=1, CANCELED=1)
    assert there.landed("area", "stop/0001") == 3
    assert creates(there.hub) == 2
    assert [page for page, _ in there.archive.at()] == ["stop/slow1.png"]
    with open_engine(there.archive.project()) as engine:
        assert engine.ledger.holds.attempts_of("letters", "letters", "stop/0001") == {}
