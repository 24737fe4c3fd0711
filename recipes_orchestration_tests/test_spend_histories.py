"""Random histories of batches, kills, stops and new prices: no cap is passed, no page is sent twice
while its first answer may still come, and what is booked is what was billed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recipes_orchestration.engine import cloud, controls, standing
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.engine.stopping import land_stopped, stop_tasks
from recipes_orchestration.ledger.bookings import BookingBook
from recipes_orchestration.ledger.controls import Scope
from recipes_orchestration.ledger.holds import HoldBook
from recipes_orchestration.ledger.reservations import Purse
from recipes_orchestration.ledger.tasks import TaskBook
from recipes_orchestration.library.library import Library
from recipes_orchestration.places.processes import this_process
from recipes_orchestration.project import load_project

from .archive import find_pages
from .cloud_archive import CloudArchive, advance_once, make_cloud_archive, read_step
from .scripted_provider import FakeProvider, Killed, World

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

# Kills are of processes here, not of the machine: nothing is gained by a disk.
MEMORY = next((each for each in ("/dev/shm",) if os.access(each, os.W_OK)), None)

BATCHES = ("a/0001", "a/0002", "b/0001")
PRICES = ("0.5", "1", "2")
"""Times what a token costs at first."""

# Where a process is killed: before and after all that is written of a batch, here and elsewhere.
POINTS = (
    (TaskBook, "prepare_all"),
    (TaskBook, "sent"),
    (TaskBook, "ended"),
    (TaskBook, "stopped"),
    (TaskBook, "landed"),
    (TaskBook, "dropped"),
    (BookingBook, "book"),
    (HoldBook, "failed_many"),
    (Library, "keep_answers"),
    (Library, "land"),
    (Library, "compact"),
)


def make_template(folder: Path) -> CloudArchive:
    archive = make_cloud_archive(folder, "anthropic", 4, batch_size=2)
    write_price(archive, Decimal(1))
    archive.draw(["b/0.png", "b/1.png"])
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def write_price(archive: CloudArchive, times: Decimal) -> None:
    place = {"batch_from": 1, "settle_seconds": 0, "max_requests": 1}
    price = {"input": float(times), "output": float(times * 1000), "batch_share": 0.5}
    archive.write_project(place, batch_size=2, prices={"claude-sonnet-4-6": price})


def dying(method: Callable[..., Any], number: int, *, before: bool) -> Callable[..., Any]:
    """The method, whose process is killed at its so-manieth call."""
    calls = count(1)

    def called(*arguments: Any, **more: Any) -> Any:
        last = next(calls) == number
        if last and before:
            raise Killed
        result = method(*arguments, **more)
        if last:
            raise Killed
        return result

    return called


ANSWER = st.one_of(st.integers(1, 100), st.sampled_from(["expired", "errored"]))


class Histories(RuleBasedStateMachine):
    """One process after another at work on six pages, each of at most some $0.0505 at first."""

    template: CloudArchive

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(cloud, "open_provider", lambda *_, **__: FakeProvider(self.world))
        # As soon as it is asked for, a task of a process that is not there is looked for.
        self.patch.setattr(standing, "_age", lambda _: 1e9)
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY)) / uuid4().hex
        self.engine: Engine

    @initialize(cap=st.sampled_from(["0.06", "0.12", "0.31", "2"]))
    def begin(self, cap: str) -> None:
        shutil.copytree(self.template.folder, self.folder)
        self.cap = Decimal(cap)
        self.raise_cap(Decimal(0))

    def _open(self) -> None:
        self.context = open_engine(load_project(self.folder))
        self.engine = self.context.__enter__()
        self.engine.owner = f"{this_process().rpartition(':')[0]}:0.00/{uuid4().hex}"

    @rule(batch=st.sampled_from(BATCHES))
    def advance(self, batch: str) -> None:
        advance_once(self.engine, batch=batch)

    @rule()
    def poll(self) -> None:
        poll_open(self.engine)

    @rule(answers=st.lists(ANSWER, max_size=6), first=st.integers(0, 5))
    def end(self, answers: list[int | str], first: int) -> None:
        self.world.answers = list(answers)
        for batch in self.world.batches[first:]:
            self.world.end(batch)

    @rule(batch=st.sampled_from(BATCHES))
    def lose(self, batch: str) -> None:
        self.world.lose = True
        advance_once(self.engine, batch=batch)
        self.world.lose = False

    @rule(batch=st.sampled_from(BATCHES))
    def refuse(self, batch: str) -> None:
        self.world.refuse = True
        advance_once(self.engine, batch=batch)
        self.world.refuse = False

    @precondition(lambda self: self.world.batches)
    @rule()
    def stop(self) -> None:
        stop_tasks(self.engine, self.engine.ledger.tasks.open())
        for task in self.engine.ledger.tasks.open():
            land_stopped(self.engine, task.id)

    @rule()
    def begin_anew(self) -> None:
        self.context.__exit__(None, None, None)
        self._open()

    @rule(
        point=st.sampled_from(POINTS),
        before=st.booleans(),
        number=st.integers(1, 2),
        batch=st.sampled_from(BATCHES),
        stops=st.booleans(),
    )
    def kill(
        self, point: tuple[type, str], before: bool, number: int, batch: str, stops: bool
    ) -> None:
        owner, name = point
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name), number, before=before))
            with suppress(Killed):
                self._work(batch, stops)
        self.begin_anew()

    @rule(when=st.sampled_from(["before", "after"]), batch=st.sampled_from(BATCHES))
    def kill_while_it_sends(self, when: str, batch: str) -> None:
        self.world.kill = when
        with suppress(Killed):
            self._work(batch, False)
        self.world.kill = ""
        self.begin_anew()

    def _work(self, batch: str, stops: bool) -> None:
        """What the process was at when it was killed."""
        if stops:
            self.stop()
        advance_once(self.engine, batch=batch)

    @rule()
    def stop_all(self) -> None:
        controls.stop(self.engine, Scope("letters"))

    @rule()
    def resume_all(self) -> None:
        controls.resume(self.engine, Scope("letters"))

    @rule(times=st.sampled_from(PRICES))
    def change_price(self, times: str) -> None:
        self.context.__exit__(None, None, None)
        self.world.price = Decimal(times)
        write_price(CloudArchive(self.folder), self.world.price)
        self._open()

    @rule(usd=st.sampled_from([Decimal("0.05"), Decimal("0.3")]))
    def raise_cap(self, usd: Decimal) -> None:
        if hasattr(self, "context"):
            self.context.__exit__(None, None, None)
        self.cap += usd
        archive = CloudArchive(self.folder)
        archive.write_recipe([read_step("anthropic")], spend=float(self.cap))
        self._open()

    @invariant()
    def no_cap_is_passed(self) -> None:
        if hasattr(self, "context"):
            held = self.engine.ledger.reservations.committed(Purse())
            assert held.booked + held.reserved <= self.cap
            # Whatever has been sent is booked or reserved: the bill cannot be larger.
            assert self.world.billed <= self.cap

    @invariant()
    def no_page_is_sent_twice(self) -> None:
        assert self.world.twice == []

    @invariant()
    def what_is_open_is_reserved_and_nothing_else(self) -> None:
        if hasattr(self, "context"):
            held = {each.task_id for each in self.engine.ledger.reservations.all()}
            assert held == {task.id for task in self.engine.ledger.tasks.open()}

    def teardown(self) -> None:
        if hasattr(self, "context"):
            self._land_all()
            self._check_sums()
            self.context.__exit__(None, None, None)
        self.patch.undo()
        shutil.rmtree(self.folder.parent)

    def _land_all(self) -> None:
        for _ in range(20):
            stop_tasks(self.engine, self.engine.ledger.tasks.open())
            for task in self.engine.ledger.tasks.open():
                land_stopped(self.engine, task.id)
            if not self.engine.ledger.tasks.open():
                break
        assert self.engine.ledger.tasks.open() == []

    def _check_sums(self) -> None:
        engine = self.engine
        held = engine.ledger.reservations.committed(Purse())
        assert held.reserved == 0
        assert held.booked == self.world.billed
        bookings = engine.ledger.bookings.all()
        rows = [
            row["cost_usd"]
            for batch in BATCHES
            for row in engine.library.table("letters", "read", batch, ["cost_usd"]).to_pylist()
        ]
        wasted = sum((each.wasted_usd for each in bookings), Decimal(0))
        assert sum(rows, Decimal(0)) + wasted == held.booked
        for by in (("recipe",), ("step", "model"), ("day", "price"), ("place", "model", "day")):
            sums = engine.ledger.spend.sums(by)
            assert sum((each.booked_usd for each in sums), Decimal(0)) == held.booked
            assert sum((each.saved_usd for each in sums), Decimal(0)) == held.booked
            assert sum(each.tasks for each in sums) == len(bookings)


def test_in_any_history_no_cap_is_passed_and_the_sums_are_those_of_the_rows_and_the_waste(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Histories.template = make_template(tmp_path_factory.mktemp("histories") / "template")
    how = settings(
        max_examples=200,
        derandomize=True,
        database=None,
        stateful_step_count=14,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(Histories, settings=how)
