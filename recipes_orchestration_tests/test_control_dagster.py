"""Decisions from Dagster: the six jobs, and what the adopt sensor does with runs that wait."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from recipes_orchestration.engine.controls import pause, resume, scope_of, stop
from recipes_orchestration.orchestration.run_tags import (
    AWAIT,
    DEFERRING,
    FOR_PERSON,
    FOR_SLOT,
    PLACE,
    SINCE,
    STOPPING,
    WAITING,
    WORDS,
    YES,
    tag_words,
)
from recipes_orchestration.places.place import State

from .waiting_runs import Bench, RemotePlace, bench, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")

Status = dg.DagsterRunStatus
WAITS = {SINCE: "2026-01-01T00:00:00+00:00", PLACE: "anthropic", AWAIT: "open"}


def decide(bench: Bench, job: str, *, fails: bool = False, **config: Any) -> str:
    """Runs the job as the launchpad would; gives what it said, or why it failed."""
    done = bench.defs.resolve_job_def(job).execute_in_process(
        instance=bench.instance,
        raise_on_error=False,
        run_config={"ops": {f"recipes_{job}": {"config": {"recipe": "measure", **config}}}},
    )
    assert done.success is not fails
    if fails:
        (failure,) = (event for event in done.all_events if event.is_step_failure)
        return str(failure.step_failure_data.user_failure_data.description)  # type: ignore[union-attr]
    run = bench.instance.get_run_by_id(done.run_id)
    assert run is not None
    return run.tags["recipes/words"]


def waiting(bench: Bench, why: str, batch: str = "a/0001") -> dg.DagsterRun:
    return bench.run(batch, Status.NOT_STARTED, tags={**WAITS, WAITING: why})


def test_pause_and_resume_are_jobs(bench: Bench):
    words = decide(bench, "pause", folder="a", reason="new scans")
    assert words.startswith("folder a of measure is paused: nothing new is sent.")
    with bench.engine() as engine:
        (control,) = engine.ledger.controls.all()
    assert (control.kind, control.words, control.scope.folder) == ("pause", "new scans", "a")
    assert control.by.startswith("run ")
    assert "may go on" in decide(bench, "resume")
    with bench.engine() as engine:
        assert engine.ledger.controls.all() == []


def test_a_part_keeps_what_the_whole_was_told(bench: Bench):
    decide(bench, "stop")
    assert "stays as it is" in decide(bench, "resume", folder="a")
    with bench.engine() as engine:
        assert len(engine.ledger.controls.all()) == 1


def test_what_does_not_exist_is_refused_in_words(bench: Bench):
    assert "no batch c/0001" in decide(bench, "pause", batch="c/0001", fails=True)
    assert "no step nothing" in decide(bench, "stop", step="nothing", fails=True)


def test_now_is_refused_when_the_step_has_no_plain_calls(bench: Bench):
    words = decide(bench, "now", step="size", fails=True)
    assert "only a step at a provider has plain calls" in words


def test_stop_asks_the_place_to_end_what_is_out(bench: Bench, remote: RemotePlace):
    bench.task("a/0001")
    bench.task("b/0001")
    words = decide(bench, "stop", folder="a")
    assert words.startswith("Stopping: tasks are still to end, 1 at anthropic")
    assert remote.cancelled == ["id-a/0001"]
    remote.states["id-a/0001"] = State.ENDED
    bench.tick()
    with bench.engine() as engine:
        assert [task.batch for task in engine.ledger.tasks.open()] == ["b/0001"]
    assert decide(bench, "stop", folder="a").startswith("Stopped: ")


def stop_run(bench: Bench) -> dg.DagsterRun:
    (run,) = bench.instance.get_runs(dg.RunsFilter(job_name="stop"))
    return run


def test_the_run_of_a_stop_says_so_when_all_has_ended(bench: Bench, remote: RemotePlace):
    bench.task("a/0001")
    decide(bench, "stop", folder="a", step="ask")
    bench.tick()
    assert stop_run(bench).tags[WORDS].startswith("Stopping: ")
    remote.states["id-a/0001"] = State.ENDED
    bench.tick()
    run = stop_run(bench)
    assert run.tags[STOPPING] == "no"
    assert run.tags[WORDS].startswith("Stopped: 0 of 2 pages through ask at anthropic; nothing")
    assert run.tags[WORDS] in bench.words(run)


def test_a_stop_that_was_taken_back_is_not_said_to_have_come_to_its_end(
    bench: Bench, remote: RemotePlace
):
    bench.task("a/0001")
    decide(bench, "stop", folder="a")
    decide(bench, "resume")
    bench.tick()
    run = stop_run(bench)
    assert (run.tags[STOPPING], run.tags[WORDS].partition(" before")[0]) == ("no", "It was resumed")


def test_a_tag_keeps_whole_sentences():
    words = f"Stopped: 2 of 3 pages. {'by a person ' * 20}. To go on."
    assert tag_words(words) == "Stopped: 2 of 3 pages."
    assert tag_words("a" * 300) == "a" * 199 + "…"


@pytest.mark.parametrize("job", ["pause", "resume", "stop", "now", "retry", "release"])
def test_the_launchpad_asks_for_a_recipe_and_refuses_none(bench: Bench, job: str):
    given = bench.defs.resolve_job_def(job).run_config
    assert given is not None
    shown = given["ops"][f"recipes_{job}"]["config"]
    assert next(iter(shown)) == "recipe"
    assert set(shown.values()) == {""}
    assert 'no recipe ""; allowed: measure' in decide(bench, job, fails=True, **shown)


def test_a_page_is_set_aside_with_a_reason_only(bench: Bench):
    words = decide(bench, "release", page="a/p1.png", reason=" ", fails=True)
    assert words.startswith("Say why")


def test_a_task_whose_place_gave_no_id_in_time_is_ended_by_the_next_poll(
    bench: Bench, remote: RemotePlace
):
    with bench.engine() as engine:
        scope = scope_of(engine, "measure")
        stop(engine, scope)
    bench.task("a/0001")  # it was being sent meanwhile
    bench.tick()
    assert remote.cancelled == ["id-a/0001"]


def test_a_run_that_waits_for_a_person_stays_until_it_is_resumed(bench: Bench):
    run = waiting(bench, FOR_PERSON)
    with bench.engine() as engine:
        scope = scope_of(engine, "measure", step="ask")
        pause(engine, scope)
    bench.tick()
    assert bench.again(run).tags[AWAIT] == "open"
    with bench.engine() as engine:
        resume(engine, scope)
    bench.tick()
    assert bench.again(run).tags[AWAIT] == "ended"


def test_a_paused_run_has_its_continuation_wait_for_the_person(bench: Bench):
    run = bench.run("a/0001", tags={**WAITS, WAITING: FOR_PERSON, DEFERRING: YES})
    (request,) = bench.tick().run_requests or []
    assert (request.tags[WAITING], request.tags[AWAIT]) == (FOR_PERSON, "open")
    assert bench.state(run) is Status.STARTED


@pytest.mark.parametrize("why", [FOR_SLOT, FOR_PERSON])
def test_a_waiting_run_is_let_go_after_a_stop_so_that_it_can_say_so(
    bench: Bench, remote: RemotePlace, why: str
):
    remote.max_open = 0
    run = waiting(bench, why)
    other = waiting(bench, FOR_SLOT, "b/0001")
    with bench.engine() as engine:
        stop(engine, scope_of(engine, "measure", folder="a"))
    bench.tick()
    assert bench.again(run).tags[AWAIT] == "ended"
    assert bench.again(other).tags[AWAIT] == "open"


def test_release_and_retry_are_jobs(bench: Bench):
    words = decide(bench, "release", page="a/p1.png", step="ask", reason="blank")
    assert words == "a/p1.png is set aside at ask: blank"
    assert decide(bench, "retry") == "0 holds cleared; 0 pages cannot be read."
    assert decide(bench, "retry", page="a/p1.png").startswith("1 holds cleared")
    given = decide(bench, "release", page="a/p1.png", step="ask", reason="read", value="Dear")
    assert given == "a/p1.png has a value by hand at ask: read"
    with bench.engine() as engine:
        (row,) = engine.library.table("measure", "ask", "a/0001").to_pylist()
    assert (row["value"], row["model"]) == ('{"text":"Dear"}', "by hand")
    assert row["note"].endswith(": read")
