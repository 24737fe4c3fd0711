"""Runs that are killed with SIGKILL and started again: all lands, nothing landed is redone."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from recipes_orchestration.engine.engine import open_engine

from .archive import Archive, find_pages, make_archive
from .stage_runner import check_at_rest, check_files, kill, landed_pages, run_batches, start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

BATCHES = ("a/0001", "b/0001")
LIMITS = {"land_every_pages": 3, "land_every_seconds": 1}

POINTS = [
    "TaskBook.prepare_all:before:1",
    "TaskBook.prepare_all:after:1",
    "LocalPlace.submit:after:1",
    "TaskBook.sent:before:1",
    "TaskBook.sent:after:1",
    "Library.land:before:1",
    "Library.land:after:1",
    "Library.land:after:3",
    "LocalStore.put:before:2",
    "HoldBook.failed_many:before:1",
    "HoldBook.failed_many:after:1",
    "TaskBook.ended:before:1",
    "TaskBook.ended:after:1",
    "Library.compact:before:1",
    "LocalStore.remove:before:1",
    "Library.compact:after:1",
    "TaskBook.landed:before:1",
    "TaskBook.landed:after:1",
]


def discovered(archive: Archive) -> Archive:
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    return archive


def computed_since(archive: Archive, position: int) -> list[tuple[str, str]]:
    log = archive.folder / "ran.log"
    text = log.read_bytes()[position:].decode() if log.exists() else ""
    pairs = [line.split("\t") for line in text.split("\n") if line]
    return [(step, page_id) for step, page_id in pairs]


def log_size(archive: Archive) -> int:
    log = archive.folder / "ran.log"
    return log.stat().st_size if log.exists() else 0


def test_a_run_killed_at_random_moments_lands_every_page_once(tmp_path: Path):
    names = [f"{folder}/p{n}.png" for folder in "ab" for n in range(20)]
    archive = discovered(
        make_archive(tmp_path / "project", names, params={"sleep": 0.1}, limits=LIMITS)
    )
    moments = random.Random(1891)
    killed = 0
    for _ in range(6):
        with open_engine(archive.project()) as engine:
            check_files(engine)
            landed = landed_pages(engine, BATCHES)
        before = log_size(archive)
        process = start(archive, BATCHES)
        while log_size(archive) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.4))
        killed += process.poll() is None
        kill(process)
        assert landed.isdisjoint(computed_since(archive, before))
    assert killed >= 4
    with open_engine(archive.project()) as engine:
        landed = landed_pages(engine, BATCHES)
        before = log_size(archive)
        run_batches(engine, BATCHES)
        assert landed.isdisjoint(computed_since(archive, before))
        check_at_rest(engine, BATCHES)
    assert len(archive.ran()) == 2 * len(names)


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_write_of_the_protocol_loses_nothing(tmp_path: Path, point: str):
    names = [f"a/p{n}.png" for n in range(8)] + ["a/fails.png"]
    # Slow enough that the pages come in several chunks, however late the parent looks.
    archive = discovered(
        make_archive(tmp_path / "project", names, params={"sleep": 0.2}, limits=LIMITS)
    )
    process = start(archive, ["a/0001"], point)
    assert process.wait(60) == -9
    # Workers that were at a page when their parent died may still write that down.
    time.sleep(0.3)
    with open_engine(archive.project()) as engine:
        check_files(engine)
        landed = landed_pages(engine, ["a/0001"])
        before = log_size(archive)
        run_batches(engine, ["a/0001"])
        assert landed.isdisjoint(computed_since(archive, before))
        check_at_rest(engine, ["a/0001"], held=1)
    ran = archive.ran()
    failed = ran.pop(("area", "a/fails.png"))
    assert failed <= engine.project.limits.tries + 1
    assert len(ran) == 2 * len(names) - 1
    assert max(ran.values()) <= 2
