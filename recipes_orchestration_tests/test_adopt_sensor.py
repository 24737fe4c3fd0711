from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta

import dagster as dg
import psutil
import pytest

from recipes_orchestration.ledger.tasks import TaskHead, TaskState
from recipes_orchestration.orchestration.adopting import poll_interval
from recipes_orchestration.orchestration.continuations import Works
from recipes_orchestration.orchestration.run_tags import (
    AWAIT,
    BACKFILL_ID_TAG,
    DEATHS,
    DEFERRING,
    FAILURES,
    FOR_SLOT,
    FOR_TASKS,
    PARENT_RUN_ID_TAG,
    PARTITION_NAME_TAG,
    PLACE,
    RIVALS,
    ROOT_RUN_ID_TAG,
    SINCE,
    STOPPED,
    TASK,
    WAITING,
    YES,
)
from recipes_orchestration.places.place import State
from recipes_orchestration.places.processes import this_process

from .waiting_runs import Bench, RemotePlace, bench, dead_process, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")

Status = dg.DagsterRunStatus
WAITS = {WAITING: FOR_TASKS}
DEFERS = {**WAITS, DEFERRING: YES}


def alive(bench: Bench, run: dg.DagsterRun) -> None:
    """The run's process is this one."""
    with bench.engine() as engine:
        engine.ledger.runs.beat(run.run_id, f"{this_process()}/abc")


def dies(bench: Bench, run: dg.DagsterRun) -> None:
    with bench.engine() as engine:
        engine.ledger.runs.beat(run.run_id, f"{dead_process()}/abc")


def deferring(bench: Bench, batch: str, **tags: str) -> dg.DagsterRun:
    run = bench.run(batch, tags={**DEFERS, **tags})
    alive(bench, run)
    return run


def requests(result: dg.SensorResult) -> list[dg.RunRequest]:
    return list(result.run_requests or [])


def test_a_run_that_waits_gets_one_continuation_in_the_queue(bench: Bench):
    bench.task("a/0001")
    run = deferring(bench, "a/0001")
    result = bench.tick()
    (request,) = requests(result)
    assert request.partition_key == "a/0001"
    tags = request.tags
    assert (tags[AWAIT], tags[TASK], tags[PLACE]) == ("open", "id-a/0001", "anthropic")
    assert (tags[PARENT_RUN_ID_TAG], tags[ROOT_RUN_ID_TAG]) == (run.run_id, run.run_id)
    assert tags[BACKFILL_ID_TAG] == "bf"
    assert DEFERRING not in tags
    bench.queue(result)
    assert requests(bench.tick()) == []


def test_a_continuation_does_what_is_left_with_its_checks(bench: Bench):
    bench.task("a/0001")
    run = deferring(bench, "a/0001")
    bench.materialized(run, "size", "a/0001")
    (request,) = requests(bench.tick())
    assert [key.path[-1] for key in request.asset_selection or ()] == ["after", "ask"]
    assert request.asset_check_keys is None or {
        key.asset_key.path[-1] for key in request.asset_check_keys
    } == {"after", "ask"}


def test_the_root_and_a_persons_tags_go_from_run_to_run(bench: Bench):
    bench.task("a/0001")
    deferring(bench, "a/0001", **{ROOT_RUN_ID_TAG: "root", "who": "Ada"})
    (request,) = requests(bench.tick())
    assert (request.tags[ROOT_RUN_ID_TAG], request.tags["who"]) == ("root", "Ada")


def test_a_continuation_stays_until_its_task_has_ended(bench: Bench, remote: RemotePlace):
    task = bench.task("a/0001")
    deferring(bench, "a/0001")
    (queued,) = bench.queue(bench.tick())
    bench.tick()
    assert bench.again(queued).tags[AWAIT] == "open"
    remote.states["id-a/0001"] = State.ENDED
    bench.tick()
    assert bench.again(queued).tags[AWAIT] == "ended"
    with bench.engine() as engine:
        row = engine.ledger.tasks.get(task.id)
    assert row is not None
    assert row.state is TaskState.ended


def test_a_continuation_waits_for_another_batch_that_has_equal_pages(
    bench: Bench, remote: RemotePlace
):
    rival = bench.task("b/0001")
    deferring(bench, "a/0001", **{RIVALS: rival.id})
    continuations = bench.queue(bench.tick())
    queued = next(run for run in continuations if run.tags[PARTITION_NAME_TAG] == "a/0001")
    bench.tick()
    assert bench.again(queued).tags[AWAIT] == "open"
    remote.states["id-b/0001"] = State.ENDED
    bench.tick()
    assert bench.again(queued).tags[AWAIT] == "ended"


def test_a_continuation_whose_task_was_landed_by_another_may_go(bench: Bench):
    task = bench.task("a/0001")
    deferring(bench, "a/0001")
    (queued,) = bench.queue(bench.tick())
    with bench.engine() as engine:
        engine.ledger.tasks.landed(task.id)
    bench.tick()
    assert bench.again(queued).tags[AWAIT] == "ended"


def waiting_for_slot(bench: Bench, batch: str, since: str) -> dg.DagsterRun:
    tags = {WAITING: FOR_SLOT, SINCE: since, PLACE: "anthropic", AWAIT: "open"}
    return bench.run(batch, Status.NOT_STARTED, tags=tags)


def test_a_free_slot_goes_to_who_has_waited_longest(bench: Bench, remote: RemotePlace):
    remote.max_open = 1
    second = waiting_for_slot(bench, "a/0001", "2026-01-02T00:00:00+00:00")
    first = waiting_for_slot(bench, "b/0001", "2026-01-01T00:00:00+00:00")
    bench.tick()
    assert bench.again(first).tags[AWAIT] == "ended"
    assert bench.again(second).tags[AWAIT] == "open"
    bench.tick()  # the slot is promised, though not taken yet
    assert bench.again(second).tags[AWAIT] == "open"


def test_who_waits_for_a_slot_stays_while_the_place_is_paused(bench: Bench):
    run = waiting_for_slot(bench, "a/0001", "2026-01-01T00:00:00+00:00")
    with bench.engine() as engine:
        engine.ledger.pauses.pause("anthropic", "no credit")
    bench.tick()
    assert bench.again(run).tags[AWAIT] == "open"
    with bench.engine() as engine:
        engine.ledger.pauses.resume("anthropic")
    bench.tick()
    assert bench.again(run).tags[AWAIT] == "ended"


def test_a_dead_run_goes_on_in_a_continuation_and_then_ends_green(bench: Bench):
    bench.task("a/0001")
    run = bench.run("a/0001")
    dies(bench, run)
    result = bench.tick()
    (request,) = requests(result)
    assert (request.tags[AWAIT], request.tags[DEATHS]) == ("open", "1")
    assert bench.state(run) is Status.STARTED
    bench.queue(result)
    bench.tick()
    assert bench.state(run) is Status.SUCCESS
    assert "process has died" in bench.words(run)


def test_a_dead_run_with_nothing_open_goes_on_at_once(bench: Bench):
    run = bench.run("a/0001")
    dies(bench, run)
    (request,) = requests(bench.tick())
    assert request.tags[AWAIT] == "ended"


def test_a_dead_run_that_had_done_everything_ends(bench: Bench):
    run = bench.run("a/0001", steps=["size"])
    bench.materialized(run, "size", "a/0001")
    dies(bench, run)
    assert requests(bench.tick()) == []
    assert bench.state(run) is Status.SUCCESS


def test_runs_that_die_again_and_again_fail(bench: Bench):
    run = bench.run("a/0001", tags={DEATHS: "2"})
    dies(bench, run)
    assert requests(bench.tick()) == []
    assert bench.state(run) is Status.FAILURE


def test_a_run_whose_process_lives_is_left_alone(bench: Bench):
    bench.task("a/0001")
    run = bench.run("a/0001", tags=WAITS)
    alive(bench, run)
    assert requests(bench.tick()) == []
    assert bench.state(run) is Status.STARTED


def test_a_run_on_another_machine_is_dead_when_it_is_silent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    run = bench.run("a/0001")
    with bench.engine() as engine:
        engine.ledger.runs.beat(run.run_id, "elsewhere:1:2:3.00/abc")
    assert requests(bench.tick()) == []
    monkeypatch.setattr("recipes_orchestration.orchestration.reconciling.SILENT_AFTER", -1.0)
    assert len(requests(bench.tick())) == 1


def test_a_failed_runs_task_is_adopted(bench: Bench):
    bench.task("a/0001")
    run = bench.run("a/0001", Status.FAILURE)
    result = bench.tick()
    (request,) = requests(result)
    assert request.tags[PARENT_RUN_ID_TAG] == run.run_id
    assert request.tags[FAILURES] == "1"
    bench.queue(result)
    assert requests(bench.tick()) == []


def test_a_task_at_which_runs_fail_again_and_again_is_left_to_a_person(bench: Bench):
    bench.task("a/0001")
    bench.run("a/0001", Status.FAILURE, tags={FAILURES: "2"})
    result = bench.tick()
    assert requests(result) == []
    assert result.skip_reason is not None
    assert "id-a/0001 is open but 3 runs failed" in str(result.skip_reason.skip_message)


@pytest.mark.parametrize("tags", [{}, WAITS, {AWAIT: "open"}, {AWAIT: "ended"}])
def test_a_cancelled_run_stops_its_task_whether_it_still_sent_or_waited(
    bench: Bench, remote: RemotePlace, tags: dict[str, str]
):
    bench.task("a/0001")
    run = bench.run("a/0001", Status.CANCELED, tags=tags)
    assert requests(bench.tick()) == []
    assert remote.cancelled == ["id-a/0001"]
    assert "anthropic was asked to cancel id-a/0001" in bench.words(run)
    assert requests(bench.tick()) == []
    assert remote.cancelled == ["id-a/0001"]


def test_a_stopped_task_is_followed_and_the_run_says_what_came_of_it(
    bench: Bench, remote: RemotePlace
):
    task = bench.task("a/0001")
    run = bench.run("a/0001", Status.CANCELED, tags=WAITS)
    bench.tick()
    assert bench.again(run).tags[STOPPED] == (
        "Stopping: tasks are still to end, 1 at anthropic; what they have answered by then lands."
    )
    remote.states["id-a/0001"] = State.ENDED
    bench.tick()
    assert bench.again(run).tags[STOPPED] == (
        "Stopped: 0 of 2 pages through ask at anthropic; nothing read is lost."
    )
    assert "id-a/0001: 0 of its results landed" in bench.words(run)
    with bench.engine() as engine:
        row = engine.ledger.tasks.get(task.id)
    assert row is not None
    assert row.state is TaskState.landed
    assert requests(bench.tick()) == []


def test_a_cancelled_run_does_not_stop_what_another_one_watches(bench: Bench, remote: RemotePlace):
    bench.task("a/0001")
    bench.run("a/0001", Status.CANCELED, tags=WAITS)
    alive(bench, bench.run("a/0001", tags=WAITS))
    bench.tick()
    assert remote.cancelled == []


def parent_process() -> str:
    """Names the process that started this one, which is alive."""
    machine = this_process().rpartition(":")[0].rpartition(":")[0]
    parent = psutil.Process().parent()
    assert parent is not None
    return f"{machine}:{parent.pid}:{parent.create_time():.2f}"


def test_a_task_that_no_run_sent_gets_a_run_when_its_command_has_ended(bench: Bench):
    bench.task("a/0001")
    bench.task("b/0001", owner=f"{parent_process()}/abc")
    (request,) = requests(bench.tick())
    assert request.partition_key == "a/0001"
    assert [key.path[-1] for key in request.asset_selection or ()] == ["ask"]
    assert request.tags[AWAIT] == "open"


def test_heartbeats_of_ended_runs_are_forgotten(bench: Bench):
    run = bench.run("a/0001", tags=WAITS)
    alive(bench, run)
    bench.tick()
    bench.instance.report_run_failed(run)
    bench.tick()
    with bench.engine() as engine:
        assert engine.ledger.runs.of([run.run_id]) == {}


def test_a_place_that_cannot_be_opened_is_told_and_stops_nothing_else(
    bench: Bench, remote: RemotePlace, monkeypatch: pytest.MonkeyPatch
):
    from recipes_orchestration.errors import ConfigError

    bench.task("a/0001")
    deferring(bench, "a/0001")

    def refuse(*_: object) -> object:
        raise ConfigError("no key")

    monkeypatch.setattr("recipes_orchestration.engine.engine.open_place", refuse)
    assert len(requests(bench.tick())) == 1


def head(*, seconds: float) -> TaskHead:
    now = datetime.now(UTC)
    return TaskHead(
        *("t", "t", "r", "s", "l", "b", "anthropic", TaskState.open, "id", "o"),
        created_at=now - timedelta(seconds=seconds),
        sent_at=now - timedelta(seconds=seconds),
        heartbeat_at=None,
        ended_at=None,
        slot=True,
        stopped=None,
        stopped_at=None,
        held=None,
    )


@pytest.mark.parametrize(
    ("age", "interval"), [(10, 0), (299, 0), (301, 60), (1800, 150), (86_400, 300)]
)
def test_places_are_asked_often_about_fresh_tasks_and_then_every_1_to_5_minutes(
    age: float, interval: float
):
    assert poll_interval([head(seconds=age)], datetime.now(UTC)) == pytest.approx(interval, abs=1)


def many_waiting_runs(bench: Bench, count: int) -> None:
    """Runs that wait in the queue, each for its task, written straight into the two stores."""
    keys = frozenset([dg.AssetKey(["measure", "ask"]), dg.AssetKey(["measure", "after"])])
    owner = f"{dead_process()}/abc"
    with bench.engine() as engine:
        for number in range(count):
            batch = f"f{number:04}/0001"
            task = engine.ledger.tasks.prepare(
                *(f"t{number}", "measure", "ask", "letters", batch, "anthropic", 1),
                fingerprints={"ask": "f"},
                pages=[(f"p{page}.png", "0" * 64) for page in range(500)],
                claims=[],
                owner=owner,
                slot=True,
            )
            assert task is not None
            engine.ledger.tasks.sent(task.id, f"id-{number}")
            tags = {PARTITION_NAME_TAG: batch, AWAIT: "open", WAITING: FOR_TASKS}
            bench.instance.run_storage.add_run(
                dg.DagsterRun(
                    *("__ASSET_JOB", str(uuid.uuid4())),
                    status=Status.NOT_STARTED,
                    asset_selection=keys,
                    tags=tags,
                )
            )


def test_the_queue_shows_the_id_once_it_is_known(bench: Bench, remote: RemotePlace):
    """A run may be queued by a look at the ledger from before its task's id was heard."""
    task = bench.task("a/0001")
    run = bench.run("a/0001", Status.NOT_STARTED, tags={AWAIT: "open", **WAITS, TASK: task.name})
    bench.tick()
    found = bench.instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.tags[TASK] == "id-a/0001"


@pytest.mark.slow
def test_a_tick_over_1000_open_tasks_takes_two_seconds_and_one_question(
    bench: Bench, remote: RemotePlace
):
    many_waiting_runs(bench, 1000)
    started = time.process_time()
    result = bench.tick()
    seconds = time.process_time() - started
    assert remote.asked == [1000]
    assert requests(result) == []
    assert seconds < 2.0


@pytest.mark.parametrize(("location", "works"), [("here", 3), ("there", 0), (None, 3)])
def test_runs_of_another_code_location_are_another_sensors(
    bench: Bench, location: str | None, works: int
):
    run = bench.run("a/0001", tags={"dagster/code_location": "here"})
    found = Works(bench.archive.project(), bench.instance, location).of(run)
    assert len(found) == works
