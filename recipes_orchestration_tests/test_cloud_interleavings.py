"""Crashes, lost replies, late lists and polls in any order: nothing is sent twice, all lands."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recipes_orchestration.engine import cloud, standing
from recipes_orchestration.engine.engine import Engine, open_engine
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.errors import InDoubt, ProviderError
from recipes_orchestration.ledger.tasks import TaskHead, TaskRow
from recipes_orchestration.places.processes import this_process
from recipes_orchestration.project import load_project
from recipes_orchestration.providers.anthropic_provider import AnthropicProvider
from recipes_orchestration.providers.provider import BatchState, BatchStatus, Group

from .cloud_archive import CloudArchive, advance_once, make_cloud_archive, values_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

PAGES = 4
SETTLE = 3  # ticks of the world's clock; lists are at most two late


class Crash(BaseException):
    """The process is dead."""


@dataclass
class FakeBatch:
    id: str
    name: str
    ids: tuple[str, ...]
    shown_at: int
    ended: bool = False


@dataclass
class World:
    """What outlives a process: the provider, and the time."""

    named: bool
    clock: int = 0
    late: int = 0
    lose: bool = False
    fail: bool = False
    batches: list[FakeBatch] = field(default_factory=list[FakeBatch])
    beats: dict[tuple[str, datetime | None], int] = field(
        default_factory=dict[tuple[str, "datetime | None"], int]
    )

    def age(self, task: TaskHead | TaskRow) -> float:
        """In ticks since this heartbeat was first looked at, which is never before it was."""
        beat = (task.id, task.heartbeat_at or task.created_at)
        return self.clock - self.beats.setdefault(beat, self.clock)


class FakeProvider(AnthropicProvider):
    """Anthropic's questions and answers without Anthropic: nothing real can be scripted so.

    With names it behaves as the other three do when they are asked for a lost batch.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def submit(self, name: str, group: Group, file: Path, ids: Collection[str]) -> str:
        world = self._world
        if world.fail:
            world.fail = False
            raise ProviderError("It said 500.")
        sent = tuple(json.loads(line)["custom_id"] for line in file.read_bytes().splitlines())
        batch = FakeBatch(f"batch_{len(world.batches)}", name, sent, world.clock + world.late)
        world.batches.append(batch)
        world.late = 0
        if world.lose:
            world.lose = False
            raise ProviderError("Its answer was lost.")
        return batch.id

    def find(
        self,
        name: str,
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> str | None:
        world = self._world
        shown = [batch for batch in world.batches if batch.shown_at <= world.clock]
        if world.named:
            return next((each.id for each in shown if each.name == name), None)
        alike = [each for each in shown if len(each.ids) == len(ids) and each.id not in known]
        for each in alike:
            if each.ended and set(each.ids) == set(ids):
                return each.id
        if any(not each.ended for each in alike):
            raise InDoubt("One of that size goes on.")
        return None

    def statuses(self, batch_ids: Collection[str]) -> Mapping[str, BatchStatus]:
        ended = {each.id: each.ended for each in self._world.batches}
        return {
            id: BatchStatus(BatchState.ENDED if ended[id] else BatchState.RUNNING, "")
            for id in batch_ids
        }

    def results(self, batch_id: str) -> Iterator[bytes]:
        batch = next(each for each in self._world.batches if each.id == batch_id)
        for id in batch.ids:
            message = {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": id}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
            yield self.result_line(id, 200, json.dumps(message).encode())

    def cancel(self, batch_id: str) -> None:
        raise AssertionError(f"nobody asked to end {batch_id}")

    def close(self) -> None:
        pass


@dataclass
class Fuse:
    """Kills the engine at one of its calls that reach the outside; all later ones fail too."""

    left: int | None = None
    dead: bool = False

    def guard(self, owner: Any, *methods: str) -> None:
        for method in methods:
            setattr(owner, method, self._guarded(getattr(owner, method)))

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **named: Any) -> Any:
            self.step()
            answer = call(*args, **named)
            self.step()
            return answer

        return guarded

    def step(self) -> None:
        if self.left == 0:
            self.dead = True
        if self.dead:
            raise Crash
        if self.left is not None:
            self.left -= 1


class Life:
    """One process after another at work on the archive."""

    def __init__(self, folder: Path, world: World) -> None:
        self._folder = folder
        self._world = world
        self._open()

    def _open(self) -> None:
        self._context = open_engine(load_project(self._folder))
        self.engine: Engine = self._context.__enter__()
        # The token of a process that has ended: to every later engine this one is dead.
        self.engine.owner = f"{this_process().rpartition(':')[0]}:0.00/{uuid4().hex}"
        self.fuse = Fuse()
        engine = self.engine
        place = engine.place("anthropic")
        self.fuse.guard(
            engine.ledger.tasks,
            "prepare_all",
            "sent",
            "ended",
            "landed",
            "dropped",
            "steal",
            "beat",
        )
        self.fuse.guard(engine.ledger.bookings, "book")
        self.fuse.guard(engine.library, "keep_answers", "land", "compact")
        self.fuse.guard(place, "submit", "find", "statuses")

    def act(self, work: Callable[[Engine], object], crash_at: int | None) -> None:
        """Does some work, and dies at the given step of it."""
        self.fuse.left = crash_at
        try:
            work(self.engine)
        except Crash:
            self.close()
            self._open()
        self.fuse.left = None

    def close(self) -> None:
        self._context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> CloudArchive:
    place = {"max_requests": 2, "settle_seconds": SETTLE}
    folder = tmp_path_factory.mktemp("interleavings") / "template"
    return make_cloud_archive(folder, "anthropic", PAGES, place=place)


CRASHES = st.one_of(st.none(), st.integers(0, 25))
ACTS = st.one_of(
    st.tuples(st.sampled_from(["advance", "poll"]), CRASHES),
    st.tuples(st.just("lose"), st.integers(0, SETTLE - 1)),
    st.tuples(st.sampled_from(["fail", "tick", "end"]), st.none()),
)


def do(life: Life, world: World, act: str, number: int | None) -> None:
    if act == "advance":
        life.act(advance_once, number)
    elif act == "poll":
        life.act(poll_open, number)
    elif act == "lose":
        world.lose, world.late = True, number or 0
        life.act(advance_once, None)
    elif act == "tick":
        world.clock += 1
    elif act == "end":
        for batch in world.batches:
            batch.ended = True
    else:
        world.fail = True


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(named=st.booleans(), acts=st.lists(ACTS, max_size=14))
def test_in_any_order_each_page_is_sent_once_and_lands(
    template: CloudArchive,
    tmp_path: Path,
    named: bool,
    acts: list[tuple[str, int | None]],
) -> None:
    world = World(named)
    folder = tmp_path / uuid4().hex
    shutil.copytree(template.folder, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cloud, "open_provider", lambda *_, **__: FakeProvider(world))
        patch.setattr(standing, "_age", world.age)
        life = Life(folder, world)
        try:
            for act, number in acts:
                do(life, world, act, number)
            world.fail = world.lose = False
            for _ in range(30):
                do(life, world, "end", None)
                do(life, world, "tick", None)
                seen = advance_once(life.engine)
                assert seen.failure is None
                if seen.at_rest and seen.view is not None:
                    break
            sent = Counter(id for batch in world.batches for id in batch.ids)
            assert set(sent.values()) == {1}
            assert len(sent) == PAGES
            assert len(values_of(life.engine)) == PAGES
            assert life.engine.ledger.tasks.open() == []
            landed = [each.lines for each in life.engine.ledger.bookings.all()]
            assert landed == [{"landed": 2}, {"landed": 2}]
        finally:
            life.close()
            shutil.rmtree(folder)
