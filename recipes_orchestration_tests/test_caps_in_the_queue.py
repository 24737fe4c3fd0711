"""Runs that a cap holds back wait in Dagster's queue, and go on once they fit."""

from __future__ import annotations

import dagster as dg
import pytest

from recipes_orchestration.orchestration.run_tags import (
    AWAIT,
    CAP_USD,
    FOR_SLOT,
    PLACE,
    SINCE,
    WAITING,
)

from .waiting_runs import Bench, RemotePlace, bench, remote, waiting_template

__all__ = ["bench", "remote", "waiting_template"]

pytestmark = pytest.mark.usefixtures("restored_path")


def held_back(bench: Bench, batch: str, usd: str) -> dg.DagsterRun:
    tags = {WAITING: FOR_SLOT, SINCE: batch, PLACE: "anthropic", AWAIT: "open", CAP_USD: usd}
    return bench.run(batch, dg.DagsterRunStatus.NOT_STARTED, tags=tags)


def with_cap(bench: Bench, usd: float) -> Bench:
    """The same with another cap; Dagster's code location loads the project anew."""
    file = bench.archive.folder / "recipes" / "measure.yaml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("spend:")]
    file.write_text("\n".join([*lines, f"spend: {usd}", ""]))
    return Bench.of(bench.archive, bench.instance)


def test_a_run_stays_in_the_queue_until_the_cap_is_raised(bench: Bench, remote: RemotePlace):
    run = held_back(bench, "a/0001", "0.5")
    capped = with_cap(bench, 0.4)
    capped.tick()
    assert capped.again(run).tags[AWAIT] == "open"
    raised = with_cap(bench, 0.5)
    raised.tick()
    assert raised.again(run).tags[AWAIT] == "ended"


def test_no_more_runs_go_at_once_than_fit_together(bench: Bench, remote: RemotePlace):
    first, second = held_back(bench, "a/0001", "0.3"), held_back(bench, "b/0001", "0.3")
    capped = with_cap(bench, 0.5)
    capped.tick()
    assert capped.again(first).tags[AWAIT] == "ended"
    assert capped.again(second).tags[AWAIT] == "open"


def test_a_run_without_a_cap_is_let_go(bench: Bench, remote: RemotePlace):
    run = held_back(bench, "a/0001", "0.5")
    bench.tick()
    assert bench.again(run).tags[AWAIT] == "ended"
