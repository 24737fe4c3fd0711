"""Folders of tasks that are over: whoever comes by removes them, with no run at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from recipes_orchestration.engine import tidying
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.tidying import tidy
from recipes_orchestration.errors import Unreachable
from recipes_orchestration.ledger.database import Ledger
from recipes_orchestration.ledger.tasks import NewTask
from recipes_orchestration.places.task_folders.far_folders import Over

from .waiting_runs import Bench, RemotePlace, bench, dead_process, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")


@dataclass
class FarPlace(RemotePlace):
    """A place with folders, of which the test says whether it can be reached."""

    away: bool = False
    asked_for: list[str] = field(default_factory=list[str])

    def clear(self, tasks: Sequence[Over]) -> Iterator[str]:
        self.asked_for += [task.name for task in tasks]
        if self.away:
            raise Unreachable("the place is away")
        for task in tasks:
            yield task.name


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FarPlace:
    from recipes_orchestration.engine import engine as engine_module

    place = FarPlace()
    monkeypatch.setattr(engine_module, "open_place", lambda project, name: place)
    return place


def landed(ledger: Ledger, name: str = "one") -> None:
    """A task with a folder that its process was killed before it removed."""
    made = ledger.tasks.prepare_all(
        [NewTask(name, {}, [], [], {"group": {"batch": "a"}}, None, folder=True)],
        recipe="measure",
        stage="ask",
        source="letters",
        batch="a/0001",
        place="anthropic",
        attempt=1,
        owner=f"{dead_process()}/abc",
    )
    assert made is not None
    ledger.tasks.sent(made[0].id, f"id of {name}")
    ledger.tasks.landed(made[0].id)


def test_the_sensor_removes_what_a_killed_run_left(bench: Bench, far: FarPlace):
    with bench.engine() as engine:
        landed(engine.ledger)
    bench.tick()
    bench.tick()
    assert far.asked_for == ["one"]


def test_a_place_that_is_away_is_not_asked_at_each_look(bench: Bench, far: FarPlace):
    far.away = True
    with bench.engine() as engine:
        landed(engine.ledger)
        looks(engine, 3)
    assert far.asked_for == ["one"]


def test_a_place_that_was_away_is_asked_later(
    bench: Bench, far: FarPlace, monkeypatch: pytest.MonkeyPatch
):
    far.away = True
    with bench.engine() as engine:
        landed(engine.ledger)
        looks(engine, 1)
        monkeypatch.setattr(tidying, "TRIED_AGAIN_AFTER", 0.0)
        far.away = False
        looks(engine, 3)
    assert far.asked_for == ["one", "one"]


def test_what_another_process_is_removing_is_left_to_it(bench: Bench, far: FarPlace):
    with bench.engine() as one, bench.engine() as other:
        landed(one.ledger)
        one.ledger.leftovers.take(one.ledger.leftovers.left(), one.owner)
        looks(other, 1)
    assert far.asked_for == []


def test_what_a_killed_process_was_removing_goes_at_once(bench: Bench, far: FarPlace):
    with bench.engine() as engine:
        landed(engine.ledger)
        engine.ledger.leftovers.take(engine.ledger.leftovers.left(), f"{dead_process()}/abc")
        looks(engine, 2)
    assert far.asked_for == ["one"]


def looks(engine: Engine, times: int) -> None:
    for _ in range(times):
        tidy(engine)
