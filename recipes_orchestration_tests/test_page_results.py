"""An asset of somebody else's takes a step's results as a data frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.pages_events import batches_of
from recipes_orchestration.orchestration.recording import record_pages

from .archive import Archive, find_pages, make_archive

pytestmark = pytest.mark.usefixtures("restored_path")

AREA = step_key("measure", "area")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def archive(tmp_path: Path, instance: dg.DagsterInstance) -> Archive:
    archive = make_archive(tmp_path / "project", ["a/p2.png", "a/p10.png", "b/1.png"])
    discover(archive, instance)
    job = project_definitions(archive.project()).resolve_implicit_global_asset_job_def()
    for batch in ("a/0001", "b/0001"):
        assert job.execute_in_process(instance=instance, partition_key=batch).success
    return archive


def discover(archive: Archive, instance: dg.DagsterInstance) -> None:
    with open_engine(archive.project()) as engine:
        record_pages(engine, instance, "letters", find_pages(engine).batches)


def taken(archive: Archive, instance: dg.DagsterInstance, batch: str | None) -> pd.DataFrame:
    """What a downstream asset is handed: of one batch, or of all when it has no partitions."""
    frames: list[pd.DataFrame] = []

    def report(results: pd.DataFrame) -> None:
        frames.append(results)

    report_asset = dg.asset(
        name="report",
        ins={"results": dg.AssetIn(AREA, input_manager_key="page_results")},
        partitions_def=batches_of("letters") if batch else None,
    )(report)
    defs = dg.Definitions.merge(
        project_definitions(archive.project()), dg.Definitions(assets=[report_asset])
    )
    job = defs.resolve_implicit_global_asset_job_def()
    job.execute_in_process(
        instance=instance, partition_key=batch, asset_selection=[dg.AssetKey("report")]
    )
    return frames[0]


def test_one_partition_comes_in_page_order_with_decoded_values(
    archive: Archive, instance: dg.DagsterInstance
):
    frame = taken(archive, instance, "a/0001")
    assert list(frame["page_id"]) == ["a/p2.png", "a/p10.png"]
    assert frame["value"][0] == {"area": 7200, "text": "text of a/p2.png"}
    assert set(frame["batch"]) == {"a/0001"}


def test_an_asset_without_partitions_takes_all_of_them(
    archive: Archive, instance: dg.DagsterInstance
):
    frame = taken(archive, instance, None)
    assert sorted(frame["page_id"]) == ["a/p10.png", "a/p2.png", "b/1.png"]


def test_pages_that_changed_or_are_gone_are_left_out(
    archive: Archive, instance: dg.DagsterInstance
):
    archive.draw(["a/p2.png"], shade=1)
    (archive.pages / "b/1.png").unlink()
    (archive.pages / "b/.keep").touch()
    discover(archive, instance)
    assert list(taken(archive, instance, None)["page_id"]) == ["a/p10.png"]


def test_a_partition_without_results_is_an_empty_frame_with_all_columns(
    archive: Archive, instance: dg.DagsterInstance
):
    archive.draw(["c/1.png"])
    discover(archive, instance)
    frame = taken(archive, instance, "c/0001")
    assert len(frame) == 0
    assert {"page_id", "key", "value", "landed_at", "batch"} <= set(frame.columns)
