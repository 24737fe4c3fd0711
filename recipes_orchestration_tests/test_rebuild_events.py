"""Dagster's storage is only a view: it comes back from ledger and library."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.pages_events import pages_key
from recipes_orchestration.orchestration.recording import (
    rebuild_events,
    record_pages,
    record_view,
)
from recipes_orchestration.stages import stages_of

from .archive import Archive, find_pages, make_archive

pytestmark = pytest.mark.usefixtures("restored_path")

KEYS = (pages_key("letters"), step_key("measure", "size"), step_key("measure", "area"))
Versions = dict[tuple[str, str], str | None]


def versions(instance: dg.DagsterInstance) -> Versions:
    """The data version of every materialized partition."""
    found: Versions = {}
    for key in KEYS:
        for partition in instance.get_materialized_partitions(key):
            record = instance.get_latest_data_version_record(key, partition_key=partition)
            assert record is not None
            assert record.asset_materialization is not None
            tags = record.asset_materialization.tags or {}
            found[key.to_user_string(), partition] = tags.get("dagster/data_version")
    return found


def events(instance: dg.DagsterInstance) -> int:
    return sum(len(instance.fetch_materializations(key, limit=100).records) for key in KEYS)


def rebuilt(archive: Archive, instance: dg.DagsterInstance) -> int:
    project = archive.project()
    with open_engine(project) as engine:
        return rebuild_events(engine, instance, project.recipes.values())


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return make_archive(tmp_path / "project", ["a/1.png", "a/2.png", "a/3.png", "b/1.png"])


def run(archive: Archive, instance: dg.DagsterInstance, *batches: str) -> None:
    project = archive.project()
    with open_engine(project) as engine:
        record_pages(engine, instance, "letters", find_pages(engine).batches)
        (stage,) = stages_of(project.recipe("measure"))
        for batch in batches:
            view = run_stage(engine, stage, batch, ["size", "area"])
            assert view is not None
            record_view(engine, instance, view, view.steps)


def test_a_lost_storage_is_brought_back_with_the_same_data_versions(archive: Archive):
    with dg.DagsterInstance.ephemeral() as lost, dg.DagsterInstance.ephemeral() as new:
        run(archive, lost, "a/0001", "b/0001")
        assert rebuilt(archive, new) == 6
        assert len(versions(new)) == 6
        assert versions(new) == versions(lost)
        assert set(new.get_dynamic_partitions("letters")) == {"a/0001", "b/0001"}


def test_a_second_rebuild_adds_nothing(archive: Archive):
    with dg.DagsterInstance.ephemeral() as instance:
        run(archive, instance, "a/0001", "b/0001")
        before = events(instance)
        assert rebuilt(archive, instance) == 0
        assert events(instance) == before == 6


def test_a_batch_that_is_not_complete_is_not_materialized(archive: Archive):
    with dg.DagsterInstance.ephemeral() as lost, dg.DagsterInstance.ephemeral() as new:
        run(archive, lost, "a/0001")
        rebuilt(archive, new)
        assert new.get_materialized_partitions(step_key("measure", "area")) == {"a/0001"}
        assert new.get_materialized_partitions(pages_key("letters")) == {"a/0001", "b/0001"}
