"""A deadline at every kind of place: what it says is told, its work is ended, held or hurried."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import PageState, look
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.ledger.alerts import Alert
from recipes_orchestration.ledger.tables import tasks
from recipes_orchestration.project import load_project
from recipes_orchestration.rehearsal import HUB, Rehearsal
from recipes_orchestration.rehearsal.slurm_site import SlurmSite
from recipes_orchestration.runner.work import FailureKind
from recipes_orchestration.yaml_files import ConfigErrors

from .cloud_archive import (
    BATCH,
    PROVIDERS,
    advance_once,
    read_step,
    run_all,
    values_of,
)
from .cloud_landing import cloud
from .cloud_runner import direct
from .hub_archive import hub_place, until
from .job_archive import JobArchive, chain, first_stage, make_job_archive, slurm_place
from .test_alerts import earlier

pytestmark = pytest.mark.usefixtures("restored_path")

PAGES = 3


def late(engine: Engine, hours: float = 27) -> None:
    earlier(engine.ledger, tasks.c.sent_at, timedelta(hours=hours))


def states(engine: Engine, step: str) -> dict[str, PageState]:
    view = look(engine, engine.project.recipe("letters"), BATCH, [step])
    return view.steps[step].states


def told(engine: Engine) -> Alert:
    """The one alert, which a second tick does not tell again."""
    poll_open(engine)
    poll_open(engine)
    (alert,) = engine.ledger.alerts.open()
    assert alert.kind == "deadline"
    return alert


@pytest.mark.parametrize("on_deadline", ["hold", "calls"])
@pytest.mark.parametrize("provider", [each for each in PROVIDERS if each != "anthropic"])
def test_a_deadline_at_a_provider(
    tmp_path: Path, rehearsal: Rehearsal, provider: str, on_deadline: str
) -> None:
    direct(rehearsal, provider, never_ends=True)
    steps = [read_step(provider, deadline="26h", on_deadline=on_deadline)]
    archive = cloud(tmp_path, rehearsal, provider, PAGES, steps=steps)
    with archive.engine() as engine:
        advance_once(engine)
        late(engine)
        alert = told(engine)
        (head,) = engine.ledger.tasks.heads()
        assert (
            f"The deadline of 26h has passed for letters/read: batch a/0001, {head.remote_id} at "
            f"{provider}, was sent 27.0 hours ago. {provider} says: "
        ) in alert.words
        assert f"{provider} says: it is still at work on it" not in alert.words
        assert rehearsal.counts(provider)["cancels"] == 1
        run_all(engine)
        if on_deadline == "calls":
            assert alert.words.endswith("the rest goes as plain calls.")
            assert set(states(engine, "read").values()) == {PageState.LANDED}
            assert len(values_of(engine)) == PAGES
        else:
            assert alert.words.endswith("the rest is held.")
            assert set(states(engine, "read").values()) == {PageState.HELD}
            held = engine.ledger.holds.held("letters")
            assert {row.reason for row in held} == {FailureKind.DEADLINE}
        assert rehearsal.counts(provider)["creates"] == 1


def job_archive(
    folder: Path, settings: Mapping[str, Any], place: str, names: list[str]
) -> JobArchive:
    first, *rest = chain(place)
    steps = [{**first, "deadline": "26h"}, *rest]
    return make_job_archive(folder / "project", settings, names, place=place, steps=steps)


def held_after_all(engine: Engine) -> dict[str, PageState]:
    """How the pages stand at the step `size` once the place has ended the work."""
    stage = first_stage(engine)
    until(lambda: advance(engine, stage, BATCH).at_rest)
    return states(engine, "size")


@pytest.mark.slow
def test_a_deadline_on_a_cluster_asks_about_all_its_tasks_and_ends_them(
    slurm_site: SlurmSite, tmp_path: Path
) -> None:
    settings = slurm_place(slurm_site, tmp_path, pages_per_task=1, parallel=1)
    archive = job_archive(tmp_path, settings, "slurm", ["a/slow1.png", "a/slow2.png"])
    with archive.engine() as engine:
        advance(engine, first_stage(engine), BATCH)
        until(archive.at)
        late(engine)
        alert = told(engine)
        assert "at slurm (and 1 more), was sent 27.0 hours ago. slurm says: " in alert.words
        assert "Slurm says running" in alert.words
        assert "It waits in Slurm's queue (JobArrayTaskLimit)" in alert.words
        until(lambda: not slurm_site.ask("squeue", "-h", "-r", "-o", "%F_%K").split())
        assert set(held_after_all(engine).values()) == {PageState.HELD}
        assert {row.reason for row in engine.ledger.holds.held()} == {FailureKind.DEADLINE}


@pytest.mark.slow
def test_what_was_done_on_a_cluster_by_its_deadline_lands(
    slurm_site: SlurmSite, tmp_path: Path
) -> None:
    archive = job_archive(
        tmp_path, slurm_place(slurm_site, tmp_path), "slurm", ["a/1.png", "a/slow.png"]
    )
    with archive.engine() as engine:
        advance(engine, first_stage(engine), BATCH)
        until(lambda: archive.at() and archive.ran())
        late(engine)
        poll_open(engine)
        pages = held_after_all(engine)
    assert pages == {"a/1.png": PageState.LANDED, "a/slow.png": PageState.HELD}


@pytest.mark.slow
def test_a_deadline_in_jobs_keeps_what_was_done(hub: Rehearsal, tmp_path: Path) -> None:
    archive = job_archive(tmp_path, hub_place(hub), "hf_jobs", ["a/1.png", "a/slow.png"])
    with archive.engine() as engine:
        advance(engine, first_stage(engine), BATCH)
        until(archive.at)
        late(engine)
        alert = told(engine)
        (head,) = engine.ledger.tasks.heads()
        assert f"batch a/0001, {head.remote_id} at hf_jobs, was sent 27.0 hours ago" in alert.words
        assert "hf_jobs says: running on cpu-basic." in alert.words
        pages = held_after_all(engine)
        assert pages["a/slow.png"] is PageState.HELD
        assert {row.reason for row in engine.ledger.holds.held()} == {FailureKind.DEADLINE}
    assert {job["stage"] for job in hub.counts(HUB)["jobs"]} == {"CANCELED"}


@pytest.mark.parametrize(
    ("place", "settings"),
    [("slurm", {"scratch": "/tmp/none"}), ("hf_jobs", {"namespace": "n", "dataset": "n/d"})],
)
def test_plain_calls_at_a_place_for_jobs_are_a_mistake(
    tmp_path: Path, place: str, settings: Mapping[str, Any]
) -> None:
    archive = make_job_archive(tmp_path / "project", None, pages=1, place=place)
    archive.write_project({**settings, "runner": "recipes-runner"})
    recipe = archive.folder / "recipes" / "letters.yaml"
    recipe.write_text(
        "recipe: letters\nsource: letters\nsteps:\n  - name: size\n    run: job_steps:size\n"
        f"    place: {place}\n    deadline: 26h\n    on_deadline: calls\n"
    )
    with pytest.raises(ConfigErrors) as caught:
        load_project(archive.folder)
    assert (
        f'recipes/letters.yaml:8: step "size": on_deadline: found "calls", but {place} takes no '
        "plain calls; allowed here: hold"
    ) in str(caught.value)
