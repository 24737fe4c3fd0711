"""No page leaves without two yeses: nothing is packaged, sent or queued, whoever asks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.consent import RUN_TAG, missing_consent
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.errors import NoConsent, ProviderError
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.recording import record_pages
from recipes_orchestration.project import load_project
from recipes_orchestration.recipe import Recipe
from recipes_orchestration.stages import stages_of

from .cloud_archive import PROVIDERS, CloudArchive, make_cloud_archive
from .command_runs import recipes
from .doorbell import Doorbell, doorbell
from .job_archive import BATCH, JobArchive, make_job_archive

pytestmark = pytest.mark.usefixtures("restored_path")

PLACES = (*PROVIDERS, "slurm", "hf_jobs")
NOT_BOTH = {
    "neither": {"project": False, "recipe": None},
    "project's missing": {"project": False, "recipe": "pages_may_leave"},
    "recipe's missing": {"project": True, "recipe": None},
}
LOCAL = {"name": "size", "run": "counting_steps:size"}


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Doorbell]:
    """Every place of the archives here is behind this door."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, "a-key-of-nobody")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    with doorbell() as bell:
        yield bell


FarArchive = CloudArchive | JobArchive


@dataclass(frozen=True)
class Site:
    """An archive with a step at the place, and what lay in its folder when it was made."""

    archive: FarArchive
    files: frozenset[Path]

    def say(self, *, project: bool, recipe: str | None) -> None:
        """The two yeses, as the files say them."""
        for file, key, value in (
            ("project.yaml", "pages_may_leave", project),
            ("recipes/letters.yaml", "consent", recipe),
        ):
            path = self.archive.folder / file
            path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))

    def prepared(self) -> list[str]:
        """Files that were not there before, besides the ledger and Dagster's own."""
        now = frozenset(self.archive.folder.rglob("*"))
        names = (str(path.relative_to(self.archive.folder)) for path in now - self.files)
        ours = (".recipes/ledger.db", "home", "dagster_home", "__pycache__")
        return sorted(name for name in names if not name.startswith(ours))

    def tasks(self) -> int:
        with self.archive.engine() as engine:
            return len(engine.ledger.tasks.open())

    def assert_nothing_left(self, bell: Doorbell) -> None:
        assert (bell.rings, self.prepared(), self.tasks()) == (0, [], 0)


def cloud_settings(provider: str, bell: Doorbell) -> dict[str, Any]:
    if provider != "bedrock":
        return {"base_url": bell.url}
    return {
        "base_url": bell.url,
        "runtime_url": bell.url,
        "s3_url": bell.url,
        "region": "us-east-1",
    }


def job_settings(place: str, bell: Doorbell, folder: Path) -> dict[str, Any]:
    if place == "hf_jobs":
        return {"endpoint": bell.url, "namespace": "nobody", "dataset": "nobody/pages"}
    config = folder.parent / "ssh_config"
    config.write_text(f"Host far\n  HostName 127.0.0.1\n  Port {bell.port}\n")
    return {"host": "far", "ssh_config": str(config), "scratch": "/tmp/none", "runner": "none"}


def make_site(folder: Path, place: str, bell: Doorbell, **more: Any) -> Site:
    archive: FarArchive
    if place in PROVIDERS:
        settings = cloud_settings(place, bell)
        bucket = "none" if place == "bedrock" else None
        archive = make_cloud_archive(folder, place, 2, place=settings, bucket=bucket, **more)
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        archive = make_job_archive(folder, job_settings(place, bell, folder), pages=2, place=place)
    with archive.engine():  # what opening it leaves is not what a run prepares
        pass
    return Site(archive, frozenset(folder.rglob("*")))


def first_look(site: Site, *, request: bool = False) -> None:
    project = load_project(site.archive.folder)
    with open_engine(project, pages_may_leave=request) as engine:
        advance(engine, stages_of(project.recipe("letters"))[0], BATCH)


@pytest.mark.parametrize("request_", [False, True])
@pytest.mark.parametrize("recipe", [False, True])
@pytest.mark.parametrize("project", [False, True])
def test_pages_may_leave_by_the_projects_yes_and_one_more(
    tmp_path: Path, bell: Doorbell, project: bool, recipe: bool, request_: bool
):
    loaded = load_project(make_site(tmp_path / "a", "anthropic", bell).archive.folder)
    loaded = replace(loaded, pages_may_leave=project)
    own = replace(loaded.recipe("letters"), pages_may_leave=recipe)
    words = missing_consent(loaded, own, "anthropic", request=request_)
    assert (words is None) is (project and (recipe or request_))


def test_work_on_this_machine_needs_no_yes(tmp_path: Path, bell: Doorbell):
    loaded = load_project(make_site(tmp_path / "a", "anthropic", bell).archive.folder)
    loaded = replace(loaded, pages_may_leave=False)
    assert missing_consent(loaded, Recipe("letters", "letters", ()), "local") is None


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("project's missing", ["pages_may_leave: true", "is missing"]),
        ("recipe's missing", ["consent: pages_may_leave", "--pages-may-leave", "is missing"]),
        ("neither", ["pages_may_leave: true", "consent: pages_may_leave", "are missing"]),
    ],
)
def test_the_message_says_which_yes_is_missing(
    tmp_path: Path, bell: Doorbell, says: str, words: list[str]
):
    site = make_site(tmp_path / "a", "anthropic", bell)
    site.say(**NOT_BOTH[says])  # pyright: ignore[reportArgumentType]
    with pytest.raises(NoConsent) as refused:
        first_look(site)
    told = str(refused.value)
    assert all(each in told for each in words)
    assert ("project.yaml" in told) is (says != "recipe's missing")
    assert ("consent:" in told) is (says != "project's missing")


@pytest.mark.parametrize("says", NOT_BOTH)
@pytest.mark.parametrize("place", PLACES)
def test_without_both_nothing_is_prepared_or_sent(
    tmp_path: Path, bell: Doorbell, place: str, says: str
):
    site = make_site(tmp_path / "a", place, bell)
    site.say(**NOT_BOTH[says])  # pyright: ignore[reportArgumentType]
    with pytest.raises(NoConsent):
        first_look(site, request=says != "recipe's missing")
    site.assert_nothing_left(bell)


@pytest.mark.parametrize("place", PLACES)
def test_with_both_something_knocks(tmp_path: Path, bell: Doorbell, place: str):
    """Shows that the door is where the place is, so that silence means something."""
    site = make_site(tmp_path / "a", place, bell)
    site.say(project=True, recipe=None)
    with suppress(ProviderError):  # nobody answers behind the door
        first_look(site, request=True)
    assert bell.rings > 0


@pytest.mark.parametrize("place", PLACES)
def test_the_command_sends_nothing(tmp_path: Path, bell: Doorbell, place: str):
    site = make_site(tmp_path / "a", place, bell)
    site.say(project=True, recipe=None)
    ran = recipes(site.archive, "run", "letters", "--no-dagster", "--yes")
    assert ran.code != 0
    assert "--pages-may-leave" in ran.err
    site.assert_nothing_left(bell)


def test_the_commands_yes_counts_for_its_run_alone(tmp_path: Path, bell: Doorbell):
    site = make_site(tmp_path / "a", "anthropic", bell)
    site.say(project=True, recipe=None)
    recipes(site.archive, "run", "letters", "--no-dagster", "--yes", "--pages-may-leave", "--now")
    assert bell.rings > 0
    bell.rings = 0
    recipes(site.archive, "run", "letters", "--no-dagster", "--yes", "--now")
    assert bell.rings == 0


def test_the_commands_yes_is_not_the_projects(tmp_path: Path, bell: Doorbell):
    site = make_site(tmp_path / "a", "anthropic", bell)
    site.say(project=False, recipe=None)
    ran = recipes(site.archive, "run", "letters", "--no-dagster", "--yes", "--pages-may-leave")
    assert "`pages_may_leave: true` in project.yaml" in ran.err
    site.assert_nothing_left(bell)


def test_steps_of_this_machine_run_and_the_rest_is_told_of_first(tmp_path: Path, bell: Doorbell):
    site = make_site(tmp_path / "a", "anthropic", bell, steps=[LOCAL, reading()])
    site.say(project=False, recipe=None)
    ran = recipes(site.archive, "run", "letters", "--no-dagster", "--yes")
    assert len(site.archive.ran("size")) == 2
    lines = ran.err.splitlines()
    assert "may not leave" in lines[0]
    assert bell.rings == 0


@pytest.mark.parametrize("place", PLACES)
def test_a_backfill_is_refused_before_it_is_launched(tmp_path: Path, bell: Doorbell, place: str):
    site = make_site(tmp_path / "a", place, bell)
    site.say(project=True, recipe=None)
    ran = recipes(site.archive, "backfill", "letters", "--url", bell.url)
    assert ran.code != 0
    assert "may not leave" in ran.err
    site.assert_nothing_left(bell)


def reading() -> dict[str, Any]:
    return {
        "name": "read",
        "run": "prompt",
        "place": "anthropic",
        "model": "claude-sonnet-4-6",
        "prompt": "prompts/read.md",
        "image": False,
        "max_tokens": 100,
        "needs": ["size"],
    }


@dataclass
class Launchpad:
    """Runs of one partition as the UI starts them, in an instance of its own."""

    site: Site
    instance: dg.DagsterInstance

    def run(
        self, steps: tuple[str, ...], config: Mapping[str, Any] | None = None, tag: str = ""
    ) -> str:
        """Why the run failed; empty when it did not."""
        project = load_project(self.site.archive.folder)
        with open_engine(project) as engine:
            record_pages(engine, self.instance, "letters", [BATCH])
        keys = [step_key("letters", step) for step in steps]
        defs = project_definitions(project)
        done = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=self.instance,
            partition_key=BATCH,
            asset_selection=keys,
            raise_on_error=False,
            run_config={"ops": {f"letters__{steps[-1]}": {"config": dict(config)}}}
            if config
            else None,
            tags={RUN_TAG: tag} if tag else None,
        )
        failed = [event for event in done.all_events if event.is_step_failure]
        if not failed:
            return ""
        return str(failed[0].step_failure_data.user_failure_data.description)  # type: ignore[union-attr]


@pytest.fixture
def pad(tmp_path: Path, bell: Doorbell) -> Iterator[Launchpad]:
    """A recipe with a step here and one at a provider, the project's yes said."""
    steps = [LOCAL, reading()]
    site = make_site(tmp_path / "a", "anthropic", bell, steps=steps, limits={"inline_wait": 0})
    site.say(project=True, recipe=None)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Launchpad(site, instance)


def test_a_run_from_the_ui_says_what_is_missing(pad: Launchpad, bell: Doorbell):
    assert "--pages-may-leave" in pad.run(("size", "read"))
    assert (bell.rings, pad.site.tasks()) == (0, 0)
    (run,) = pad.instance.get_runs()  # none waits in its place
    assert run.status is dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize("way", ["config", "tag"])
def test_a_persons_yes_in_the_ui_counts(pad: Launchpad, bell: Doorbell, way: str):
    config = {"pages_may_leave": True} if way == "config" else None
    tags = "yes" if way == "tag" else ""
    # Nobody answers behind the door, so the run fails; but not for want of a yes.
    pad.site.archive.write_project(  # type: ignore[union-attr]
        {"base_url": bell.url, "batch_from": 100}, pages_may_leave=True
    )
    pad.run(("size", "read"), config, tags)
    assert bell.rings > 0
    (run,) = pad.instance.get_runs()
    assert run.tags[RUN_TAG] == "yes"  # and so the run that goes on from it


@pytest.mark.parametrize("recipe", [None, "pages_may_leave"])
def test_a_schedule_asks_only_for_what_may_go(pad: Launchpad, recipe: str | None):
    pad.site.archive.write_recipe([LOCAL, reading()], when="new_pages")
    pad.site.say(project=True, recipe=recipe)
    project = load_project(pad.site.archive.folder)
    defs = project_definitions(project)
    keys = [step_key("letters", step) for step in ("size", "read")]

    def tick(cursor: Any = None) -> Any:
        return dg.evaluate_automation_conditions(
            defs=defs,
            instance=pad.instance,
            asset_selection=dg.AssetSelection.assets(*keys),
            cursor=cursor,
        )

    before = tick()
    with open_engine(project) as engine:
        record_pages(engine, pad.instance, "letters", [BATCH])
    asked = tick(before.cursor)
    found = {key.path[-1] for key in keys if asked.get_requested_partitions(key)}
    assert found == ({"size"} if recipe is None else {"size", "read"})


def test_the_ui_shows_why_a_step_is_not_started(pad: Launchpad):
    defs = project_definitions(load_project(pad.site.archive.folder))
    node = defs.resolve_asset_graph().get(step_key("letters", "read"))
    assert "may not leave" in (node.description or "")


def test_the_sheet_says_what_is_missing(pad: Launchpad):
    ran = recipes(pad.site.archive, "plan", "letters")
    assert "may not leave" in ran.out


def test_what_was_sent_lands_after_the_yes_was_taken_back(tmp_path: Path, rehearsal: Any):
    archive = make_cloud_archive(tmp_path / "a", pages=2)
    site = Site(archive, frozenset())
    first_look(site)
    site.say(project=False, recipe=None)
    rehearsal.finish("anthropic")
    with archive.engine() as engine:
        for _ in range(20):
            try:
                advance(engine, stages_of(engine.project.recipe("letters"))[0], BATCH)
            except NoConsent:
                break
            if len(engine.library.landed("letters", "read", BATCH)) == 2:
                break
            engine.place("anthropic").wait(0.2)
        assert len(engine.library.landed("letters", "read", BATCH)) == 2
