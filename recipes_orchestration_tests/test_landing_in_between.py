"""A stage of several tasks: what has ended lands after a while, though others still run."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.look import look
from recipes_orchestration.ledger.tasks import NewTask
from recipes_orchestration.orchestration.run_tags import AWAIT, DEFERRING, WAITING, YES
from recipes_orchestration.places.place import State

from .waiting_runs import Bench, RemotePlace, bench, dead_process, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")


@pytest.fixture
def queued(bench: Bench) -> dg.DagsterRun:
    """A continuation that waits for the two tasks of an array."""
    with bench.engine() as engine:
        view = look(engine, engine.project.recipe("measure"), "a/0001", ["size", "ask"])
        group = [
            NewTask(
                f"array_{index}",
                {"ask": view.steps["ask"].fingerprint},
                [(page, view.pages[page].sha256)],
                {view.steps["ask"].keys[page]},
            )
            for index, page in enumerate(view.pages)
        ]
        tasks = engine.ledger.tasks.prepare_all(
            group,
            recipe="measure",
            stage="ask",
            source="letters",
            batch="a/0001",
            place="anthropic",
            attempt=1,
            owner=f"{dead_process()}/abc",
            slot=True,
            array="array",
        )
        assert tasks is not None
        for task in tasks:
            engine.ledger.tasks.sent(task.id, f"id-{task.name}")
    bench.run("a/0001", tags={DEFERRING: YES, WAITING: "tasks"})
    (continuation,) = bench.queue(bench.tick())
    return continuation


def awaits(bench: Bench, run: dg.DagsterRun) -> str:
    bench.tick()
    bench.tick()
    return bench.again(run).tags[AWAIT]


def test_while_one_task_still_runs_the_others_wait_to_land(
    bench: Bench, remote: RemotePlace, queued: dg.DagsterRun
):
    remote.states["id-array_0"] = State.ENDED
    assert awaits(bench, queued) == "open"


def test_what_has_ended_lands_after_a_while_though_a_task_still_runs(
    bench: Bench, remote: RemotePlace, queued: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Engine, "land_every", lambda *_: timedelta(0))
    remote.states["id-array_0"] = State.ENDED
    assert awaits(bench, queued) == "ended"


def test_nothing_lands_while_no_task_has_ended(
    bench: Bench, queued: dg.DagsterRun, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Engine, "land_every", lambda *_: timedelta(0))
    assert awaits(bench, queued) == "open"


def test_when_all_have_ended_the_run_may_go_at_once(
    bench: Bench, remote: RemotePlace, queued: dg.DagsterRun
):
    remote.states |= {"id-array_0": State.ENDED, "id-array_1": State.ENDED}
    assert awaits(bench, queued) == "ended"
