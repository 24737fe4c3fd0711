"""A run that a person cancels in Dagster: a stop that ends when a person asks for it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.tags import (
    AUTOMATION_CONDITION_TAG,
    RETRY_NUMBER_TAG,
    SCHEDULE_NAME_TAG,
    SENSOR_NAME_TAG,
)

from recipes_orchestration.engine.controls import resume, scope_of, stop
from recipes_orchestration.ledger.controls import ControlKind
from recipes_orchestration.orchestration.continuations import continuation, left_of
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.run_tags import (
    AWAIT,
    CANCELLED,
    CONTINUES,
    DEFERRING,
    ENDED,
    FOR_SLOT,
    PARENT_RUN_ID_TAG,
    PLACE,
    SINCE,
    STOPPED,
    WAITING,
    YES,
    is_by_person,
)
from recipes_orchestration.places.place import State

from .archive import make_archive
from .command_runs import recipes
from .test_adopt_sensor import parent_process
from .test_control_runs import why
from .test_dagster_runs import discovered, instance
from .waiting_runs import Bench, RemotePlace, bench, dead_process, remote, waiting_template

__all__ = ["bench", "instance", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")

Status = dg.DagsterRunStatus
WAITS = {WAITING: "tasks"}
LOCAL = ("size", "area")
AUTOMATION = {SENSOR_NAME_TAG: "recipes_automation", AUTOMATION_CONDITION_TAG: "true"}


def controls(bench: Bench) -> list[tuple[str, str, str]]:
    with bench.engine() as engine:
        found = engine.ledger.controls.all()
    return [(each.kind, each.scope.batch, each.scope.step) for each in found]


def observed(bench: Bench, step: str) -> list[str]:
    records = bench.instance.fetch_observations(step_key("measure", step), limit=10).records
    return [str(record.asset_observation.description) for record in records]  # type: ignore[union-attr]


@pytest.fixture
def here(tmp_path: Path, instance: dg.DagsterInstance) -> Bench:
    """An archive whose steps all run here."""
    archive = make_archive(tmp_path / "project", ["a/1.png", "a/2.png", "b/1.png"])
    return Bench(archive, instance, discovered(archive, instance))


def materialize(
    here: Bench, batch: str, tags: dict[str, str] | None = None
) -> dg.ExecuteInProcessResult:
    return here.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=here.instance,
        partition_key=batch,
        asset_selection=[step_key("measure", step) for step in LOCAL],
        raise_on_error=False,
        tags=tags,
    )


def test_it_leaves_a_decision_and_says_so_like_a_stop(bench: Bench, remote: RemotePlace):
    bench.task("a/0001")
    run = bench.run("a/0001", Status.CANCELED, tags=WAITS)
    bench.tick()
    assert controls(bench) == [(ControlKind.CANCEL, "a/0001", "")]
    assert remote.cancelled == ["id-a/0001"]
    assert observed(bench, "ask") == []
    told = recipes(bench.archive, "status", "measure").out
    assert "Stopping: tasks are still to end, 1 at anthropic" in told
    remote.states["id-a/0001"] = State.ENDED
    bench.tick()
    words = "Stopped: 0 of 2 pages through ask at anthropic; nothing read is lost."
    assert bench.again(run).tags[STOPPED] == words
    assert words in bench.words(run)
    assert observed(bench, "ask") == [words]
    told = recipes(bench.archive, "status", "measure").out
    assert "Stopped: 0 of 2 pages through after at local, 0 of 2 pages through ask at" in told
    assert "batch a/0001 of measure was stopped at" in told
    assert f"run {run.run_id[:8]} was cancelled. To go on, launch what is missing again" in told
    (document,) = recipes(bench.archive, "status", "measure", "--json").document["recipes"]
    (control,) = document["controls"]
    assert (control["kind"], control["batch"]) == ("cancel", "a/0001")


def test_what_it_still_had_to_do_is_not_sent_though_nothing_was_out(bench: Bench):
    waits = {WAITING: FOR_SLOT, SINCE: "2026-01-01T00:00:00+00:00", PLACE: "anthropic"}
    run = bench.run("a/0001", Status.CANCELED, tags={**waits, AWAIT: "open"})
    assert bench.tick().run_requests == []
    assert controls(bench) == [(ControlKind.CANCEL, "a/0001", "")]
    assert bench.again(run).tags[STOPPED].startswith("Stopped: 0 of 2 pages through after at")
    assert observed(bench, "ask") == observed(bench, "size")
    assert len(observed(bench, "size")) == 1


def test_only_the_steps_that_the_run_was_to_do_are_stopped(bench: Bench):
    bench.run("a/0001", Status.CANCELED, steps=("size",))
    bench.tick()
    assert controls(bench) == [(ControlKind.CANCEL, "a/0001", "size")]


def test_it_is_stopped_once_so_that_a_person_may_go_on_with_it(bench: Bench):
    bench.run("a/0001", Status.CANCELED)
    bench.tick()
    with bench.engine() as engine:
        words = resume(engine, scope_of(engine, "measure")).words
    assert "may go on" in words
    bench.tick()
    bench.tick()
    assert controls(bench) == []


def test_a_task_of_a_command_after_it_is_adopted_when_the_command_has_died(bench: Bench):
    """What the run was cancelled for, a person has taken up since."""
    run = bench.run("a/0001", Status.CANCELED)
    bench.tick()
    with bench.engine() as engine:
        resume(engine, scope_of(engine, "measure"))
    bench.task("a/0001")
    (request,) = bench.tick().run_requests or []
    assert request.tags[PARENT_RUN_ID_TAG] == run.run_id


def test_while_the_process_that_sent_it_lives_it_is_left_to_it_and_then_stopped(
    bench: Bench, remote: RemotePlace
):
    task = bench.task("a/0001", owner=f"{parent_process()}/abc")
    run = bench.run("a/0001", Status.CANCELED, tags=WAITS)
    for _ in range(2):
        bench.tick()
        assert (remote.cancelled, controls(bench)) == ([], [])
        assert STOPPED not in bench.again(run).tags
    with bench.engine() as engine:
        engine.ledger.tasks.steal(task.id, f"{dead_process()}/abc", task.heartbeat_at)
    bench.tick()
    assert remote.cancelled == ["id-a/0001"]
    assert controls(bench) == [(ControlKind.CANCEL, "a/0001", "")]


def test_what_a_command_has_sent_after_it_is_adopted_and_not_stopped(
    bench: Bench, remote: RemotePlace
):
    run = bench.run("a/0001", Status.STARTED)
    bench.cancel(run)
    bench.task("a/0001")
    (request,) = bench.tick().run_requests or []
    assert request.tags[PARENT_RUN_ID_TAG] == run.run_id
    assert (remote.cancelled, controls(bench)) == ([], [])


def test_its_continuation_that_was_queued_in_the_same_second_is_stopped_with_it(
    bench: Bench, remote: RemotePlace
):
    bench.task("a/0001")
    run = bench.run("a/0001", tags={**WAITS, DEFERRING: YES})
    with bench.engine() as engine:
        engine.ledger.runs.beat(run.run_id, engine.owner)
    (queued,) = bench.queue(bench.tick())
    assert queued.tags[CONTINUES] == run.run_id
    bench.cancel(run)
    bench.tick()
    assert controls(bench) == [(ControlKind.CANCEL, "a/0001", "")]
    assert remote.cancelled == ["id-a/0001"]
    remote.states["id-a/0001"] = State.ENDED
    bench.tick()
    words = "Stopped: 0 of 2 pages through ask at anthropic; nothing read is lost."
    assert bench.again(run).tags[STOPPED] == words
    # It lands what was answered and then says the same.
    assert bench.again(queued).tags[AWAIT] == ENDED


def test_a_run_that_another_one_came_after_stops_nothing(bench: Bench):
    bench.run("a/0001", Status.CANCELED)
    bench.run("a/0001", Status.NOT_STARTED)
    bench.tick()
    assert controls(bench) == []


def test_an_automation_does_not_begin_it_again_and_a_person_does(here: Bench):
    run = here.run("a/0001", Status.CANCELED, steps=LOCAL)
    here.tick()
    again = materialize(here, "a/0001", AUTOMATION)
    assert not again.success
    assert why(again).startswith("Stopped: 0 of 2 pages through area at local, 0 of 2 pages")
    assert f"run {run.run_id[:8]} was cancelled. To go on, launch it again, or run:" in why(again)
    assert here.archive.ran() == {}
    assert materialize(here, "b/0001", AUTOMATION).success
    assert materialize(here, "a/0001").success
    assert controls(here) == []
    assert set(here.archive.ran().values()) == {1}


def test_the_command_begins_it_again_too(here: Bench):
    here.run("a/0001", Status.CANCELED, steps=LOCAL)
    here.tick()
    assert controls(here) != []
    assert recipes(here.archive, "run", "measure", "--no-dagster").code == 0
    assert controls(here) == []


def test_a_stop_outlasts_a_new_run(here: Bench):
    here.run("a/0001", Status.CANCELED, steps=LOCAL)
    here.tick()
    with here.engine() as engine:
        stop(engine, scope_of(engine, "measure"), "the wrong pages", "Ada")
    assert "measure was stopped by Ada" in why(materialize(here, "a/0001"))


def test_many_cancelled_batches_of_a_folder_are_told_in_one_line(tmp_path: Path, instance: Any):
    names = [f"a/{number}.png" for number in range(6)]
    archive = make_archive(tmp_path / "project", names, batch_size=2)
    here = Bench(archive, instance, discovered(archive, instance))
    for number in (1, 2, 3):
        here.run(f"a/{number:04}", Status.CANCELED, steps=LOCAL)
    here.tick()
    told = recipes(archive, "status", "measure").out
    assert told.count("Stopped: 0 of 6 pages through area at local") == 1
    assert "3 batches in a of measure were stopped: their runs were cancelled." in told


def test_whose_run_it_is(bench: Bench):
    assert is_by_person({})
    assert is_by_person({"dagster/backfill": "bf"})
    for tags in (AUTOMATION, {SCHEDULE_NAME_TAG: "nightly"}, {SENSOR_NAME_TAG: "recipes_adopt"}):
        assert not is_by_person(tags)
    run = bench.run("a/0001", Status.CANCELED, tags={**AUTOMATION, CANCELLED: "earlier"})
    tags = dict(continuation(run, left_of(bench.instance, run), {}).tags)
    assert CANCELLED not in tags
    assert not is_by_person({**tags, SENSOR_NAME_TAG: "recipes_adopt"})
    # Dagster copies the tags of a run that is executed again, and names it as the parent.
    assert is_by_person({**tags, SENSOR_NAME_TAG: "recipes_adopt", PARENT_RUN_ID_TAG: "that"})
    assert is_by_person({**AUTOMATION, PARENT_RUN_ID_TAG: run.run_id})
    assert not is_by_person({PARENT_RUN_ID_TAG: run.run_id, RETRY_NUMBER_TAG: "1"})
