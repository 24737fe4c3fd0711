"""A person stops a backfill in the middle of six open batches, in Dagster's own UI."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.run_tags import STOPPED, WORDS
from recipes_orchestration.rehearsal import Rehearsal, Script, running_rehearsal
from recipes_orchestration.rehearsal.anthropic_answers import result

from .archive import Archive
from .command_runs import recipes
from .test_ui_backfill import browser, click, launch_folder, shoot, visible
from .waiting_runs import make_cloud_archive
from .waiting_site import RUNS, DagsterRun, Site, open_site

__all__ = ["browser"]

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

FOLDERS = ("letters-1903", "letters-1904")
PAGES = [f"p{number:02}.png" for number in range(18)]
# Of the three requests of each batch, so many have their answers when it is cancelled.
IN_THE_MIDDLE = Script(never_ends=True, cancel_seconds=2, answered_before_cancel=2)
# US dollars for a million tokens.
IN, OUT, BATCH_SHARE = 2, 10, Decimal("0.25")
RECIPE = """\
recipe: letters
source: letters
consent: pages_may_leave
steps:
  - {name: read, run: prompt, place: anthropic, model: claude-haiku-4-5, prompt: ask.md,
     max_tokens: 100}
  - {name: after, run: "counting_steps:together", needs: [read]}
"""
BACKFILLS = """{ partitionBackfillsOrError { ... on PartitionBackfills { results { id } } } }"""


def letters_archive(folder: Path) -> Archive:
    """Two folders of six batches each for a step at a provider."""
    names = [f"{name}/{page}" for name in FOLDERS for page in PAGES]
    archive = make_cloud_archive(folder, names, inline_wait=2.0)
    project = archive.folder / "project.yaml"
    price = f"{{input: {IN}, output: {OUT}, batch_share: {BATCH_SHARE}}}"
    project.write_text(
        project.read_text().replace("batch_size: 500", "batch_size: 3")
        + f"prices: {{claude-haiku-4-5: {price}}}\n"
    )
    (archive.folder / "recipes" / "measure.yaml").unlink()
    (archive.folder / "recipes" / "letters.yaml").write_text(RECIPE)
    (archive.folder / "ask.md").write_text("Read the page.\n")
    return archive


@pytest.fixture(scope="module")
def rehearsed() -> Iterator[Rehearsal]:
    with running_rehearsal(["anthropic"]) as rehearsal:
        yield rehearsal


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory, rehearsed: Rehearsal) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("stop")
    archive = letters_archive(folder / "project")
    assert recipes(archive, "discover").code == 0
    with open_site(archive, rehearsed, folder, {}, "letters") as site:
        yield site


@pytest.fixture
def site(shared_site: Site, rehearsed: Rehearsal) -> Site:
    rehearsed.reset()
    rehearsed.script("anthropic", IN_THE_MIDDLE)
    return shared_site


def launch_job(browser: Any, site: Site, job: str, config: Mapping[str, str]) -> str:
    """Types the config into the job's launchpad and launches it, as a person does; the run's id."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    location = "recipes_orchestration.definitions"
    browser.get(f"{site.dev.url}/locations/{location}/jobs/{job}/playground")
    click(browser, "//div[contains(@class, 'CodeMirror')]//*[contains(text(), 'recipe')]")
    keys = ActionChains(browser)
    keys.key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys(Keys.DELETE)
    keys.send_keys(json.dumps({"ops": {f"recipes_{job}": {"config": config}}})).perform()
    click(browser, "//button[contains(., 'Launch Run')][not(@disabled)]")
    visible(browser, f"//*[contains(., 'Run of')]//a[contains(., '{job}')]")
    return str(browser.current_url).rpartition("/")[2]


def run_of(site: Site, job: str) -> DagsterRun:
    data = site.dev.graphql(RUNS, {"filter": {"pipelineName": job}})
    (run,) = data["runsOrError"]["results"]
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    return DagsterRun(run["runId"], run["status"], tags)


def launched(browser: Any, site: Site, folder: str) -> str:
    """Backfills the folder from the UI and waits until all six batches are out; its id."""
    before = backfills(site)
    launch_folder(browser, site.dev, folder, 6)
    (backfill,) = site.until(lambda: backfills(site) - before)
    site.all_waiting(backfill, 6)
    assert states(site) == {"running": 6}
    return backfill


def backfills(site: Site) -> set[str]:
    found = site.dev.graphql(BACKFILLS)["partitionBackfillsOrError"]["results"]
    return {each["id"] for each in found}


def answers(rehearsed: Rehearsal) -> list[Mapping[str, Any]]:
    """Each answer that the provider has given in a batch: its request's id, and what it bills."""
    given: list[Mapping[str, Any]] = []
    for batch in rehearsed.side("anthropic").batches.values():
        for number in range(batch.size if batch.end else 0):
            line = json.loads(result(batch, number))
            if line["result"]["type"] == "succeeded":
                given.append({"id": line["custom_id"], **line["result"]["message"]["usage"]})
    return given


def billed(rehearsed: Rehearsal) -> Decimal:
    tokens = sum(
        IN * each["input_tokens"] + OUT * each["output_tokens"] for each in answers(rehearsed)
    )
    return Decimal(tokens) * BATCH_SHARE / 1_000_000


def paid(site: Site, folder: str) -> tuple[Decimal, Decimal]:
    """What the ledger has booked for the folder, and what is reserved at all."""
    with open_engine(site.archive.project()) as engine:
        booked = sum(
            each.landed_usd + each.wasted_usd
            for each in engine.ledger.bookings.all()
            if each.batch.startswith(f"{folder}/")
        )
    reserved = recipes(site.archive, "spend", "--json").document["reserved_usd"]
    return Decimal(booked), Decimal(reserved)


def landed(site: Site, folder: str, step: str) -> Counter[str]:
    """How often each page is in the library."""
    with open_engine(site.archive.project()) as engine:
        return Counter(
            page.rpartition("/")[2]
            for number in range(1, 7)
            for page, _ in engine.library.landed("letters", step, f"{folder}/{number:04}")
        )


def states(site: Site) -> Counter[str]:
    return Counter(str(batch["state"]) for batch in site.batches())


def told(site: Site, backfill: str) -> Counter[str]:
    """What the runs say that were to land what the six batches answer."""
    return Counter(run.tags[STOPPED] for run in site.runs(backfill) if STOPPED in run.tags)


def stopped(site: Site, rehearsed: Rehearsal, folder: str) -> None:
    """Nothing is out any more; all that was answered is landed and paid, and nothing else is."""
    assert states(site) == {"cancelled": 6}
    assert rehearsed.counts("anthropic")["cancels"] == 6
    there = landed(site, folder, "read")
    assert (len(there), there.total(), len(answers(rehearsed))) == (12, 12, 12)
    assert paid(site, folder) == (billed(rehearsed), 0)


def only_the_rest_is_sent(site: Site, rehearsed: Rehearsal, folder: str) -> None:
    """Backfills the folder again, by the command."""
    rehearsed.script("anthropic", Script())
    assert site.ended(site.backfill(folder)) == "COMPLETED_SUCCESS"
    assert landed(site, folder, "read") == landed(site, folder, "after") == Counter(PAGES)
    # Six requests came twice: those that had no answer the first time.
    assert Counter(site.sent().values()) == {1: 12, 2: 6}
    given = Counter(each["id"] for each in answers(rehearsed))
    assert (len(given), given.total()) == (18, 18)
    assert paid(site, folder) == (billed(rehearsed), 0)


def says(browser: Any, words: str) -> None:
    """Waits until the page shows the words."""
    visible(browser, f"//*[contains(text(), {json.dumps(words)})]")


def test_six_open_batches_are_stopped_from_the_launchpad(
    site: Site, rehearsed: Rehearsal, browser: Any
):
    folder = FOLDERS[0]
    backfill = launched(browser, site, folder)
    config = {"recipe": "letters", "folder": folder, "reason": "the wrong prompt"}
    stop = launch_job(browser, site, "stop", config)
    words = "Stopped: 12 of 18 pages read at anthropic; nothing read is lost."
    site.until(lambda: run_of(site, "stop").tags.get(WORDS) == words)
    stopped(site, rehearsed, folder)

    # The folder says so, and so does each run of it, in the browser as on the command line.
    browser.get(f"{site.dev.url}/runs/{stop}")
    says(browser, words)
    shoot(browser, "stopped.png")
    assert site.ended(backfill) == "COMPLETED_FAILED"
    said = told(site, backfill)
    assert said.total() == 6
    assert {each[:33] for each in said} == {"Stopped: 2 of 3 pages read at ant"}
    failed = next(run for run in site.runs(backfill) if run.status == "FAILURE")
    browser.get(f"{site.dev.url}/runs/{failed.id}")
    says(browser, "Stopped: 2 of 3 pages read at anthropic; nothing read is lost. folder")
    status = recipes(site.archive, "status", "letters", "--folder", folder).out
    assert f"{words} folder {folder} of letters was stopped by run {stop[:8]}" in status
    assert "the wrong prompt. To go on, run: recipes resume letters" in status

    assert recipes(site.archive, "resume", "letters", "--folder", folder).code == 0
    only_the_rest_is_sent(site, rehearsed, folder)
