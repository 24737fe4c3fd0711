"""Deferral with the real `dagster dev`: nothing waits but rows, and every page is sent once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.run_tags import STOPPED
from recipes_orchestration.rehearsal import Rehearsal, Script, running_rehearsal

from .archive import Archive
from .command_runs import recipes
from .waiting_runs import make_cloud_archive
from .waiting_site import Site, ids_of, open_site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

DEPLOY = Path(__file__).parent.parent / "deploy" / "dagster.yaml"
SIX = [f"six/b{batch}/p{page}.png" for batch in range(6) for page in range(2)]
KILL = [f"kill/b{batch}/p{page}.png" for batch in range(3) for page in range(2)]
OTHERS = [*(f"stop/p{page}.png" for page in range(3)), "off/p1.png", "off/p2.png"]
AGAIN = """mutation M($id: String!) { launchRunReexecution(reexecutionParams: {
  parentRunId: $id, strategy: ALL_STEPS, useParentRunTags: true}) {
  ... on LaunchRunSuccess { run { runId } } } }"""
RUNS = """query Q($filter: RunsFilter) { runsOrError(filter: $filter) { ... on Runs { results {
  runId status } } } }"""
NEVER = Script(never_ends=True)


@pytest.fixture(scope="module")
def rehearsed() -> Iterator[Rehearsal]:
    with running_rehearsal(["anthropic"]) as rehearsal:
        yield rehearsal


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory, rehearsed: Rehearsal) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    archive = make_cloud_archive(folder / "project", [*SIX, *KILL, *OTHERS])
    assert recipes(archive, "discover").code == 0
    with open_site(archive, rehearsed, folder, {}) as site:
        yield site


@pytest.fixture
def site(shared_site: Site, rehearsed: Rehearsal) -> Site:
    rehearsed.reset()
    rehearsed.script("anthropic", NEVER)
    return shared_site


def go_on(site: Site) -> None:
    """The provider ends everything."""
    assert site.rehearsal is not None
    site.rehearsal.script("anthropic", Script())
    site.rehearsal.finish("anthropic")


def landed(archive: Archive, step: str, batch: str) -> int:
    with open_engine(archive.project()) as engine:
        return len(engine.library.landed("measure", step, batch))


def executed_again(site: Site, run_id: str) -> str:
    """Presses the button that executes all of the run again; how the last run of that ended."""
    answer = site.dev.graphql(AGAIN, {"id": run_id})["launchRunReexecution"]
    last = [answer["run"]["runId"], ""]

    def ended() -> str:
        tags = [{"key": "dagster/parent_run_id", "value": last[0]}]
        for asked in ({"runIds": last[:1]}, {"tags": tags}):
            for run in site.dev.graphql(RUNS, {"filter": asked})["runsOrError"]["results"]:
                last[:] = [run["runId"], run["status"]]
        return last[1] if last[1] in ("SUCCESS", "FAILURE", "CANCELED") else ""

    return site.until(ended)


def test_while_the_provider_works_there_is_no_process_and_then_all_is_done(site: Site):
    assert site.dev
    launched = time.time()
    backfill = site.backfill("six")
    waiting = site.all_waiting(backfill, 6)
    site.no_run_process_since(launched)
    assert site.status(backfill) == "REQUESTED"
    waiting = site.known_to_wait(backfill, len(waiting))
    assert ids_of(waiting) == {batch["id"] for batch in site.batches()}
    assert len(waiting) == 6
    go_on(site)
    assert site.ended(backfill) == "COMPLETED_SUCCESS"
    assert len(site.batches()) == 6
    assert set(site.sent().values()) == {1}
    assert site.sent().total() == len(SIX)
    for batch in range(6):
        assert landed(site.archive, "after", f"six/b{batch}/0001") == 2


def test_a_queued_continuation_cancelled_in_the_ui_is_a_stop(site: Site, rehearsed: Rehearsal):
    rehearsed.script(
        "anthropic", Script(never_ends=True, cancel_seconds=2, answered_before_cancel=1)
    )
    backfill = site.backfill("stop")
    (waiting,) = site.all_waiting(backfill, 1)
    site.terminate(waiting)
    assert site.ended(backfill) == "COMPLETED_FAILED"

    def told() -> str:
        (run,) = [run for run in site.runs(backfill) if run.id == waiting.id]
        said = run.tags.get(STOPPED, "")
        return said if said.startswith("Stopped") else ""

    words = "Stopped: 1 of 3 pages through ask at anthropic; nothing read is lost."
    assert site.until(told) == words
    assert words in recipes(site.archive, "status", "measure").out
    assert landed(site.archive, "ask", "stop/0001") == 1
    assert len(site.batches()) == 1
    assert (site.sent().total(), set(site.sent().values())) == (3, {1})
    # The button of the UI that launches it again: only what is missing is sent.
    rehearsed.script("anthropic", Script())
    assert executed_again(site, waiting.id) == "SUCCESS"
    assert [batch["size"] for batch in site.batches()] == [3, 2]
    assert landed(site.archive, "after", "stop/0001") == 3
    with open_engine(site.archive.project()) as engine:
        assert engine.ledger.controls.all() == []


def test_dagster_may_be_killed_in_the_middle_and_started_anew(site: Site):
    backfill = site.backfill("kill")

    def in_the_middle() -> bool:
        runs = site.runs(backfill)
        at_work = any(run.status == "STARTED" for run in runs) and site.batches()
        return bool(at_work and site.waiting(backfill))

    site.until(in_the_middle)
    site.kill()
    site.all_waiting(backfill, 3)
    # A creation that was cut off is looked for until it can be told that it never came; only then
    # is it sent again, which may be after this.
    assert len(site.batches()) <= 3
    go_on(site)
    assert site.ended(backfill) == "COMPLETED_SUCCESS"
    assert len(site.batches()) == 3
    assert (site.sent().total(), set(site.sent().values())) == (len(KILL), {1})


def test_with_the_sensor_off_the_run_goes_on_by_itself(site: Site):
    site.stop_sensor("recipes_adopt")
    backfill = site.backfill("off")
    (run,) = site.until(
        lambda: [run for run in site.runs(backfill) if run.tags.get("recipes/deferring") == "no"]
    )
    go_on(site)
    assert site.ended(backfill) == "COMPLETED_SUCCESS"
    assert [each.id for each in site.runs(backfill)] == [run.id]
    assert (site.sent().total(), set(site.sent().values())) == (2, {1})


def postgres_environment(url: str) -> Mapping[str, str]:
    parts = make_url(url)
    values = {
        "HOST": parts.host,
        "PORT": parts.port,
        "USER": parts.username,
        "PASSWORD": parts.password,
        "DB": parts.database,
    }
    named = {f"DAGSTER_POSTGRES_{name}": str(value) for name, value in values.items()}
    return {**named, "RECIPES_LEDGER_URL": url}


def test_it_is_the_same_on_postgresql(
    tmp_path: Path, postgres_url: str, rehearsed: Rehearsal, monkeypatch: pytest.MonkeyPatch
):
    environment = postgres_environment(postgres_url)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    rehearsed.reset()
    rehearsed.script("anthropic", NEVER)
    archive = make_cloud_archive(tmp_path / "project", ["pg/a/1.png", "pg/b/1.png"])
    (archive.folder / "dagster_home").mkdir()
    shutil.copyfile(DEPLOY, archive.folder / "dagster_home" / "dagster.yaml")
    assert recipes(archive, "discover").code == 0
    with open_site(archive, rehearsed, tmp_path, environment) as site:
        assert site.dev
        launched = time.time()
        backfill = site.backfill("pg")
        waiting = site.all_waiting(backfill, 2)
        site.no_run_process_since(launched)
        waiting = site.known_to_wait(backfill, len(waiting))
        assert ids_of(waiting) == {batch["id"] for batch in site.batches()}
        go_on(site)
        assert site.ended(backfill) == "COMPLETED_SUCCESS"
        assert (site.sent().total(), set(site.sent().values())) == (2, {1})
