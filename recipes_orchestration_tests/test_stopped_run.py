from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes_orchestration.commands.dagster_api import DagsterApi
from recipes_orchestration.engine.cancelled import take_up
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.library import Library

from .archive import find_pages, make_archive
from .dagster_dev import running_dagster
from .test_engine import run

pytestmark = [pytest.mark.usefixtures("restored_path"), pytest.mark.slow]

RUNS = "{ runsOrError { ... on Runs { results { runId status } } } }"
TERMINATE = """mutation ($id: String!) {
  terminateRun(runId: $id) { __typename }
}"""


def test_a_run_stopped_in_the_ui_keeps_what_is_done_and_frees_the_rest(tmp_path: Path):
    names = [f"a/p{n}.png" for n in range(80)]
    archive = make_archive(
        tmp_path / "project", names, params={"sleep": 0.5}, limits={"land_every_pages": 4}
    )
    with (
        open_engine(archive.project()) as engine,
        running_dagster(archive.folder, archive.folder / "dagster_home") as dev,
    ):
        find_pages(engine)
        api = DagsterApi(dev.url)
        until(lambda: api.partitions("measure", ["size"])["size"][0] == ["a/0001"], 120)
        api.launch("measure", {"size": ["a/0001"], "area": ["a/0001"]}, "to be stopped")
        until(lambda: len(engine.library.landed("measure", "area", "a/0001")) >= 8, 120)
        (started,) = dev.graphql(RUNS)["runsOrError"]["results"]
        dev.graphql(TERMINATE, {"id": started["runId"]})
        until(lambda: dev.graphql(RUNS)["runsOrError"]["results"][0]["status"] == "CANCELED", 60)
        until(lambda: engine.ledger.tasks.open() == [], 30)
    kept = Library(archive.project().library).landed("measure", "area", "a/0001")
    assert 8 <= len(kept) < 80
    before = archive.ran("size")
    assert set(before) >= {("size", page) for page, _ in kept}
    with open_engine(archive.project()) as again:
        # The adopt sensor may have seen that the run was cancelled.
        take_up(again, "measure", ["a/0001"], ["size", "area"])
        assert run(again).steps["area"].landed == 80
    twice = {page for (_, page), times in archive.ran("size").items() if times > 1}
    assert twice.isdisjoint({page for page, _ in kept})
    # At most what the two workers had in hand.
    assert len(twice) <= 2


def until(true: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.2)
