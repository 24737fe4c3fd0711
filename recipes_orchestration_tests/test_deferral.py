from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from recipes_orchestration.engine.advance import Seen
from recipes_orchestration.ledger.tasks import TaskRow
from recipes_orchestration.orchestration.deferral import (
    EVERY_VARIABLE,
    PATIENCE,
    Deferral,
    adopt_every,
    may_be_deferred,
)
from recipes_orchestration.orchestration.heartbeat import Heartbeat, rests
from recipes_orchestration.orchestration.instance import DEFAULT_YAML
from recipes_orchestration.orchestration.run_tags import (
    AWAIT,
    DEFERRING,
    PLACE,
    SINCE,
    TASK,
    WAITING,
    is_now,
    shown_ids,
)

from .waiting_runs import (
    Bench,
    RemotePlace,
    bench,
    queueing_instance,
    remote,
    waiting_template,
)

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")

Status = dg.DagsterRunStatus


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, msg: object, *args: object) -> None:
        self.lines.append(str(msg) % args if args else str(msg))


def waiting(bench: Bench, run: dg.DagsterRun, log: Log, **settings: object) -> Deferral:
    sleep: Callable[[float], None] = settings.get("sleep", lambda _: None)  # type: ignore[assignment]
    return Deferral(
        *(bench.instance, run, "anthropic", "a/0001", log),
        inline=float(str(settings.get("inline", 0.0))),
        every=float(str(settings.get("every", -PATIENCE))),  # no patience at all
        sleep=sleep,
    )


def open_task(task: TaskRow) -> Seen:
    return Seen(None, open=1, remote=(task,))


def sent(bench: Bench) -> TaskRow:
    with bench.engine() as engine:
        task = engine.ledger.tasks.get(bench.task("a/0001").id)
    assert task is not None
    return task


def test_a_run_ends_when_its_continuation_is_in_the_queue(bench: Bench):
    run, log = bench.run("a/0001"), Log()
    alive_in(bench, run)
    defer = waiting(bench, run, log, every=30, sleep=lambda _: queue_it(bench))
    assert defer(open_task(sent(bench))) is True
    assert "waits for id-a/0001 at anthropic" in log.lines[0]
    assert "goes on in run" in log.lines[-1]


def alive_in(bench: Bench, run: dg.DagsterRun) -> None:
    with bench.engine() as engine:
        engine.ledger.runs.beat(run.run_id, engine.owner)


def queue_it(bench: Bench) -> None:
    bench.queue(bench.tick())


def test_a_waiting_run_is_tagged_with_what_it_waits_for(bench: Bench):
    run = bench.run("a/0001")
    waiting(bench, run, Log())(open_task(sent(bench)))
    tags = bench.again(run).tags
    assert (tags[WAITING], tags[TASK], tags[PLACE]) == ("tasks", "id-a/0001", "anthropic")


def test_a_run_waits_for_its_task_a_while_before_it_asks_to_be_deferred(bench: Bench):
    run = bench.run("a/0001")
    assert waiting(bench, run, Log(), inline=60)(open_task(sent(bench))) is False
    assert DEFERRING not in bench.again(run).tags


def test_a_run_without_a_slot_asks_to_be_deferred_at_once(bench: Bench):
    run, log = bench.run("a/0001"), Log()
    seen = Seen(None, waiting="waiting for a slot at anthropic (10 open)")
    waiting(bench, run, log, inline=60)(seen)
    tags = bench.again(run).tags
    assert (tags[WAITING], DEFERRING in tags, SINCE in tags) == ("slot", True, True)
    assert log.lines[0] == "Batch a/0001: waiting for a slot at anthropic (10 open)."


def test_who_has_waited_for_a_slot_before_keeps_its_turn(bench: Bench):
    run = bench.run("a/0001", tags={SINCE: "2026-01-01T00:00:00+00:00"})
    waiting(bench, run, Log())(Seen(None, waiting="waiting for a slot"))
    assert bench.again(run).tags[SINCE] == "2026-01-01T00:00:00+00:00"


def test_with_no_sensor_the_run_says_so_and_goes_on_by_itself(bench: Bench):
    run, log = bench.run("a/0001"), Log()
    defer = waiting(bench, run, log)
    seen = open_task(sent(bench))
    assert defer(seen) is False
    assert bench.again(run).tags[DEFERRING] == "no"
    assert "the sensor recipes_adopt queued no continuation" in log.lines[-1]
    bench.instance.add_run_tags(run.run_id, {DEFERRING: "untouched"})
    assert defer(seen) is False  # and does not wait for it again at once
    assert bench.again(run).tags[DEFERRING] == "untouched"


def test_a_continuation_that_comes_late_is_taken_all_the_same(bench: Bench):
    run, log = bench.run("a/0001"), Log()
    alive_in(bench, run)
    defer = waiting(bench, run, log)
    seen = open_task(sent(bench))
    assert defer(seen) is False
    bench.instance.add_run_tags(run.run_id, {DEFERRING: "yes"})  # as the late tick had read it
    queue_it(bench)
    assert defer(seen) is True


NO_LIMIT = """\
concurrency:
  runs: {max_concurrent_runs: 10}
"""


@pytest.mark.parametrize(
    ("yaml", "deferrable"),
    [
        (DEFAULT_YAML.read_text(), True),
        (NO_LIMIT, False),
        (NO_LIMIT.replace("10}", "10, tag_concurrency_limits: [{key: a, limit: 0}]}"), False),
        ("run_launcher: {module: dagster, class: DefaultRunLauncher}\n", False),
    ],
)
def test_only_a_queue_with_the_limit_can_hold_a_continuation(
    tmp_path: Path, yaml: str, deferrable: bool
):
    with queueing_instance(tmp_path / "home", yaml) as instance:
        assert may_be_deferred(instance) is deferrable


def test_the_limit_may_stand_in_the_run_coordinators_settings(tmp_path: Path):
    yaml = """\
run_coordinator:
  module: dagster.core.run_coordinator
  class: QueuedRunCoordinator
  config: {tag_concurrency_limits: [{key: recipes/await, value: open, limit: 0}]}
"""
    with queueing_instance(tmp_path / "home", yaml) as instance:
        assert may_be_deferred(instance)


def test_without_the_limit_the_run_says_so_and_goes_on_by_itself(bench: Bench, tmp_path: Path):
    task = sent(bench)
    with queueing_instance(tmp_path / "other", NO_LIMIT) as instance:
        other = Bench(bench.archive, instance, bench.defs)
        run, log = other.run("a/0001"), Log()
        assert waiting(other, run, log)(open_task(task)) is False
        assert DEFERRING not in other.again(run).tags
    assert "dagster.yaml has no limit of 0 for runs tagged recipes/await=open" in log.lines[-1]


def test_a_heartbeat_is_written_while_the_run_is_at_work_and_says_when_it_rests(bench: Bench):
    with bench.engine() as engine:
        with Heartbeat(engine, "r1"):
            assert not rests(engine.ledger.runs.of(["r1"])["r1"].owner)
        assert rests(engine.ledger.runs.of(["r1"])["r1"].owner)


@pytest.mark.parametrize(("value", "now"), [("true", True), ("Yes", True), ("no", False)])
def test_a_persons_tag_makes_plain_calls(value: str, now: bool):
    assert is_now({"recipes/now": value}) is now


def test_ids_in_a_tag_are_bounded():
    assert shown_ids(["a", "b"]) == "a, b"
    assert shown_ids(list("abcde")) == "a, b, c and 2 more"
    assert len(shown_ids(["x" * 5000] * 9)) < 300


@pytest.mark.parametrize(("given", "seconds"), [("3", 3), ("", 30), ("soon", 30), ("0", 1)])
def test_the_sensors_interval_may_be_set(monkeypatch: pytest.MonkeyPatch, given: str, seconds: int):
    monkeypatch.setenv(EVERY_VARIABLE, given)
    assert adopt_every() == seconds


def test_a_run_that_is_deferred_ends_green_and_what_comes_after_is_skipped(
    bench: Bench, remote: RemotePlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Deferral, "__call__", lambda self, seen: True)
    result = bench.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=bench.instance,
        partition_key="a/0001",
        asset_selection=[dg.AssetKey(["measure", step]) for step in ("size", "ask", "after")],
        raise_on_error=False,
    )
    assert result.success
    assert [
        event.asset_key.path[-1]
        for event in result.get_asset_materialization_events()
        if event.asset_key
    ] == ["size"]
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == [
        "measure__after"
    ]
    with bench.engine() as engine:
        assert len(engine.ledger.tasks.heads(slot=True)) == 1
    assert AWAIT not in bench.instance.get_runs()[0].tags
