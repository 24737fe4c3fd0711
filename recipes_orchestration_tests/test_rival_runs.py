"""Two runs at once: of the same batch, or of batches that hold equal pages."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import Engine, open_engine

from .archive import Archive, find_pages, make_archive
from .stage_runner import check_at_rest, kill, run_batches, start

pytestmark = pytest.mark.usefixtures("restored_path")

PAGES = 16


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = make_archive(
        tmp_path / "project",
        [f"a/p{n}.png" for n in range(PAGES)],
        params={"sleep": 0.05},
        limits={"land_every_pages": 3},
    )
    shutil.copytree(archive.pages / "a", archive.pages / "b")
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    return archive


def by_content(archive: Archive) -> Counter[tuple[str, str]]:
    """How often each (step, file name) was computed; equal names have equal bytes here."""
    counts: Counter[tuple[str, str]] = Counter()
    for (step, page_id), times in archive.ran().items():
        counts[step, page_id.rpartition("/")[2]] += times
    return counts


def once_each(archive: Archive) -> bool:
    counts = by_content(archive)
    return len(counts) == 2 * PAGES and set(counts.values()) == {1}


@pytest.mark.slow
def test_two_runs_of_one_batch_compute_each_page_once(archive: Archive):
    rivals = [start(archive, ["a/0001"]) for _ in range(2)]
    assert [rival.wait(60) for rival in rivals] == [0, 0]
    assert once_each(archive)
    with open_engine(archive.project()) as engine:
        check_at_rest(engine, ["a/0001"])


@pytest.mark.slow
def test_two_runs_of_batches_with_equal_pages_compute_each_page_once(archive: Archive):
    rivals = [start(archive, [batch]) for batch in ("a/0001", "b/0001")]
    assert [rival.wait(60) for rival in rivals] == [0, 0]
    assert once_each(archive)
    with open_engine(archive.project()) as engine:
        check_at_rest(engine, ["a/0001", "b/0001"])


@pytest.mark.slow
def test_when_one_of_two_rivals_is_killed_the_other_does_the_rest(archive: Archive):
    rivals = {rival.pid: rival for rival in (start(archive, ["a/0001"]) for _ in range(2))}
    while len(archive.ran()) < 6:
        assert all(rival.poll() is None for rival in rivals.values())
        time.sleep(0.02)
    with open_engine(archive.project()) as engine:
        [task] = engine.ledger.tasks.open()
        working = next(rival for pid, rival in rivals.items() if f":{pid}:" in task.owner)
        kill(working)
        [other] = [rival for rival in rivals.values() if rival is not working]
        assert other.wait(60) == 0
        check_at_rest(engine, ["a/0001"])
    assert max(archive.ran().values()) <= 2


@pytest.mark.parametrize("rival_batch", ["a/0001", "b/0001"])
def test_what_a_rival_landed_between_look_and_claim_is_not_computed_again(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, rival_batch: str
):
    with open_engine(archive.project()) as engine, open_engine(archive.project()) as rival:
        _before_first(monkeypatch, engine, "free_claims", lambda: run_batches(rival, [rival_batch]))
        run_batches(engine, ["a/0001"])
        assert once_each(archive)
        check_at_rest(engine, ["a/0001"])


def _before_first(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, call: str, act: Callable[[], object]
) -> None:
    """Lets something happen right before the first such call to the ledger's tasks."""
    original = getattr(engine.ledger.tasks, call)
    due = [act]

    def late(*args: object) -> object:
        if due:
            due.pop()()
        return original(*args)

    monkeypatch.setattr(engine.ledger.tasks, call, late)
