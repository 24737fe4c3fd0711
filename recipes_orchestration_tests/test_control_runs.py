"""Dagster's runs of what a person has stopped, paused or set aside."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from recipes_orchestration.engine.by_hand import set_aside
from recipes_orchestration.engine.controls import pause, resume, scope_of, stop
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.events import CHECK, step_key
from recipes_orchestration.orchestration.run_tags import STOPPED

from .archive import make_archive
from .test_dagster_runs import discovered, instance, landed, materialize

__all__ = ["instance"]

pytestmark = pytest.mark.usefixtures("restored_path")


def why(done: dg.ExecuteInProcessResult) -> str:
    """Why the run's step failed, in the words that the UI shows."""
    (failure,) = (event for event in done.all_events if event.is_step_failure)
    told = failure.step_failure_data.user_failure_data
    assert told is not None
    return str(told.description)


def test_a_run_of_what_is_stopped_says_so_and_computes_nothing(
    tmp_path: Path, instance: dg.DagsterInstance
):
    archive = make_archive(tmp_path / "project", ["a/1.png", "a/2.png", "b/1.png"])
    defs = discovered(archive, instance)
    with open_engine(archive.project()) as engine:
        scope = scope_of(engine, "measure", folder="a")
        stop(engine, scope, "the wrong pages", "Ada")
        done = materialize(defs, instance, "a/0001")
        assert not done.success
        assert why(done).startswith("Stopped: 0 of 2 pages through area at local, 0 of 2 pages")
        assert "by Ada" in why(done)
        assert "the wrong pages. To go on, run: recipes resume measure" in why(done)
        run = instance.get_run_by_id(done.run_id)
        assert run is not None
        assert run.tags[STOPPED].startswith("Stopped: 0 of 2 pages")
        assert archive.ran() == {}
        assert materialize(defs, instance, "b/0001").success
        resume(engine, scope)
        assert materialize(defs, instance, "a/0001").success


def test_a_run_of_what_is_paused_fails_in_words_where_none_can_wait_in_the_queue(
    tmp_path: Path, instance: dg.DagsterInstance
):
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    defs = discovered(archive, instance)
    with open_engine(archive.project()) as engine:
        pause(engine, scope_of(engine, "measure", step="area"), by="Ada")
    done = materialize(defs, instance, "a/0001")
    assert "step area of measure was paused by Ada" in why(done)
    assert archive.ran("area") == {}
    assert archive.ran("size") == {("size", "a/1.png"): 1}


def test_a_batch_with_a_page_set_aside_is_materialized_and_its_check_passes(
    tmp_path: Path, instance: dg.DagsterInstance
):
    archive = make_archive(tmp_path / "project", ["a/1.png", "a/2.png"], max_held=0.0)
    (archive.pages / "a" / "2.png").write_bytes(b"no picture")
    defs = discovered(archive, instance)
    assert not materialize(defs, instance, "a/0001").success
    with open_engine(archive.project()) as engine:
        set_aside(engine, engine.project.recipe("measure"), "a/2.png", None, "blank", "Ada")
    done = materialize(defs, instance, "a/0001")
    assert done.success
    assert landed(instance, "area") == {"a/0001"}
    checks = {check.asset_key: check for check in done.get_asset_check_evaluations()}
    check = checks[step_key("measure", "area")]
    assert (check.check_name, check.passed) == (CHECK, True)
    assert check.description == "1 pages have landed and 1 were set aside by a person."
