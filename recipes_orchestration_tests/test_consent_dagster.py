"""A real `dagster dev` over a recipe without its yes: nothing leaves, and nothing waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from recipes_orchestration.commands.dagster_api import DagsterApi
from recipes_orchestration.engine.consent import RUN_TAG
from recipes_orchestration.engine.engine import open_engine

from .command_runs import recipes
from .doorbell import Doorbell, doorbell
from .waiting_runs import RECIPE, make_cloud_archive
from .waiting_site import Site, open_site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

STEPS = ("size", "ask", "after")
PAGES = [f"{folder}/p{page}.png" for folder in ("ui", "yes") for page in range(2)]
RUNS = """query Q { runsOrError { ... on Runs { results {
  runId status assetSelection { path } tags { key value } } } } }"""


@dataclass(frozen=True)
class Silent:
    """The site, and the door behind which its provider would be."""

    site: Site
    bell: Doorbell

    def tasks(self) -> int:
        with open_engine(self.site.archive.project()) as engine:
            found = [*engine.ledger.tasks.open()]
            last = engine.ledger.tasks.last_attempt
            return len(found) + sum(
                last("measure", "ask", f"{folder}/0001") for folder in ("ui", "new")
            )

    def launch(self, batch: str, tags: dict[str, str] | None = None) -> str:
        """A backfill as the dialog of the UI launches it."""
        api = DagsterApi(self.site.dev.url)
        return api.launch("measure", {step: [batch] for step in STEPS}, batch, tags)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Silent]:
    folder = tmp_path_factory.mktemp("consent")
    with doorbell() as bell:
        archive = make_cloud_archive(folder / "project", PAGES, base_url=bell.url)
        own = archive.folder / "recipes" / "measure.yaml"
        own.write_text(RECIPE.replace("consent: pages_may_leave", "when: new_pages"))
        assert recipes(archive, "discover").code == 0
        with open_site(archive, None, folder, {"ANTHROPIC_API_KEY": "nobodys"}) as site:
            yield Silent(site, bell)


def test_a_backfill_from_the_ui_fails_in_words_and_leaves_nothing(silent: Silent):
    backfill = silent.launch("ui/0001")
    assert silent.site.ended(backfill) == "COMPLETED_FAILED"
    assert [run.status for run in silent.site.runs(backfill)] == ["FAILURE"]
    assert "may not leave for anthropic" in silent.site.dev.told()
    assert (silent.bell.rings, silent.tasks()) == (0, 0)


def test_a_schedule_starts_the_steps_of_this_machine_alone(silent: Silent):
    """The automation sensor finds new pages, and asks for the step before the provider's."""
    site = silent.site
    site.archive.draw(["new/p0.png", "new/p1.png"])
    assert recipes(site.archive, "discover").code == 0

    def sized() -> int:
        with open_engine(site.archive.project()) as engine:
            return len(engine.library.landed("measure", "size", "new/0001"))

    assert site.until(sized) == 2
    time.sleep(40)  # another tick of the sensor, which sees that the step before has landed
    runs = site.dev.graphql(RUNS)["runsOrError"]["results"]
    partition = {"key": "dagster/partition", "value": "new/0001"}
    asked = [
        key["path"][-1] for run in runs if partition in run["tags"] for key in run["assetSelection"]
    ]
    assert asked == ["size"]
    assert (silent.bell.rings, silent.tasks()) == (0, 0)


def test_a_persons_yes_on_a_backfill_reaches_its_runs(silent: Silent):
    backfill = silent.launch("yes/0001", {RUN_TAG: "yes"})
    silent.site.until(lambda: silent.bell.rings > 0)
    for run in silent.site.runs(backfill):
        with suppress(AssertionError):  # it may have ended by itself: nobody answers
            silent.site.terminate(run)
