from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import CHECK, step_key
from recipes_orchestration.orchestration.pages_events import pages_key
from recipes_orchestration.orchestration.recording import record_pages

from .archive import Archive, find_pages, make_archive

pytestmark = pytest.mark.usefixtures("restored_path")

NAMES = [f"a/p{n}.png" for n in range(5)] + [f"b/p{n}.png" for n in range(3)]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return make_archive(tmp_path / "project", NAMES)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def discovered(archive: Archive, instance: dg.DagsterInstance) -> dg.Definitions:
    """The archive's definitions with its batches known to Dagster."""
    with open_engine(archive.project()) as engine:
        found = find_pages(engine)
        record_pages(engine, instance, "letters", found.batches)
    return project_definitions(archive.project())


def materialize(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    batch: str,
    steps: tuple[str, ...] = ("size", "area"),
) -> dg.ExecuteInProcessResult:
    job = defs.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance,
        partition_key=batch,
        asset_selection=[step_key("measure", step) for step in steps],
        raise_on_error=False,
    )


def landed(instance: dg.DagsterInstance, step: str) -> set[str]:
    return instance.get_materialized_partitions(step_key("measure", step))


def test_the_definitions_load_and_each_step_is_an_asset_of_its_recipe(archive: Archive):
    defs = project_definitions(archive.project())
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
        "letters/pages",
        "measure/size",
        "measure/area",
        "measure/sheet",
    }
    assert graph.get(step_key("measure", "area")).group_name == "measure"


def test_the_steps_of_a_stage_are_one_multi_asset(archive: Archive):
    graph = project_definitions(archive.project()).resolve_asset_graph()
    size = graph.get(step_key("measure", "size"))
    assert {key.path[-1] for key in size.execution_set_asset_keys} == {"size"}
    assert size.assets_def is graph.get(step_key("measure", "area")).assets_def


def test_the_code_version_of_an_asset_is_the_fingerprint_of_its_step(archive: Archive):
    project = archive.project()
    graph = project_definitions(project).resolve_asset_graph()
    recipe = project.recipe("measure")
    assert graph.get(step_key("measure", "area")).code_version == recipe.fingerprint("area")


def test_an_asset_tells_its_columns_kinds_and_recipe_file(archive: Archive):
    graph = project_definitions(archive.project()).resolve_asset_graph()
    node = graph.get(step_key("measure", "size"))
    assert "dagster/column_schema" in node.metadata
    references = node.metadata["dagster/code_references"].code_references
    assert references[0].file_path == str(archive.folder / "recipes" / "measure.yaml")
    assert "local" in node.kinds


def test_a_run_materializes_what_has_landed(archive: Archive, instance: dg.DagsterInstance):
    defs = discovered(archive, instance)
    result = materialize(defs, instance, "a/0001")
    assert result.success
    assert landed(instance, "size") == landed(instance, "area") == {"a/0001"}


def test_a_materialization_carries_counts_a_preview_and_where_the_rows_are(
    archive: Archive, instance: dg.DagsterInstance
):
    defs = discovered(archive, instance)
    result = materialize(defs, instance, "a/0001")
    (event,) = result.asset_materializations_for_node("measure__size_to_area")[1:]
    values: dict[str, Any] = {name: value.value for name, value in event.metadata.items()}
    assert (values["pages"], values["landed"], values["held"], values["rows"]) == (5, 5, 0, 5)
    assert values["dagster/partition_row_count"] == 5
    assert "a/p0.png" in values["preview"]
    assert "text of a/p0.png" in values["preview"]
    assert "measure/area/a/0001" in values["dagster/uri"]


def test_the_data_version_follows_the_landed_keys(archive: Archive, instance: dg.DagsterInstance):
    defs = discovered(archive, instance)
    materialize(defs, instance, "a/0001")
    first = version(instance, "area", "a/0001")
    materialize(defs, instance, "a/0001")
    assert version(instance, "area", "a/0001") == first
    archive.draw(["a/p0.png"], shade=1)
    defs = discovered(archive, instance)
    materialize(defs, instance, "a/0001")
    assert version(instance, "area", "a/0001") != first


def version(instance: dg.DagsterInstance, step: str, batch: str) -> str:
    record = instance.get_latest_data_version_record(step_key("measure", step), partition_key=batch)
    assert record is not None
    assert record.asset_materialization is not None
    return (record.asset_materialization.tags or {})["dagster/data_version"]


def test_one_step_alone_can_be_selected(archive: Archive, instance: dg.DagsterInstance):
    defs = discovered(archive, instance)
    assert materialize(defs, instance, "a/0001", ("size",)).success
    assert archive.ran("area") == {}
    assert landed(instance, "area") == set()


def test_a_step_whose_need_has_not_landed_says_which(
    archive: Archive, instance: dg.DagsterInstance
):
    defs = discovered(archive, instance)
    result = materialize(defs, instance, "a/0001", ("area",))
    assert not result.success
    assert "cannot go on before size has landed" in failure_of(result)
    assert landed(instance, "area") == set()


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    return (data.user_failure_data.description if data.user_failure_data else "") or ""


def test_a_batch_with_few_held_pages_goes_on_and_its_check_names_them(
    archive: Archive, instance: dg.DagsterInstance
):
    (archive.pages / "a/broken.png").write_bytes(b"no picture")
    defs = discovered(archive, instance)
    result = materialize(defs, instance, "a/0001")
    assert result.success
    (check,) = [
        each
        for each in result.get_asset_check_evaluations()
        if each.asset_key == step_key("measure", "area")
    ]
    assert (check.check_name, check.passed, check.partition) == (CHECK, False, "a/0001")
    assert "a/broken.png" in (check.description or "")


def test_a_batch_with_too_many_held_pages_fails_with_the_table_of_them(
    archive: Archive, instance: dg.DagsterInstance
):
    archive.draw(["c/good.png"])
    for name in ("one", "two"):
        (archive.pages / f"c/{name}.png").write_bytes(b"no picture")
    defs = discovered(archive, instance)
    result = materialize(defs, instance, "c/0001")
    assert not result.success
    assert "| c/one.png | size |" in failure_of(result)
    assert landed(instance, "size") == set()


def test_a_batch_of_which_nothing_landed_is_never_materialized(
    tmp_path: Path, instance: dg.DagsterInstance
):
    archive = make_archive(tmp_path / "project", max_held=1.0)
    (archive.pages / "c").mkdir()
    (archive.pages / "c/one.png").write_bytes(b"no picture")
    defs = discovered(archive, instance)
    assert not materialize(defs, instance, "c/0001").success
    assert landed(instance, "size") == set()


def test_the_pages_of_a_source_are_materialized_by_the_discovery_sensor(
    archive: Archive, instance: dg.DagsterInstance
):
    defs = project_definitions(archive.project())
    sensor = defs.resolve_sensor_def("discover_letters")
    context = dg.build_sensor_context(instance=instance, definitions=defs)
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    assert [event.partition for event in result.asset_events] == ["a/0001", "b/0001"]
    assert (result.dynamic_partitions_requests or [])[0].partition_keys == ["a/0001", "b/0001"]


def test_a_killed_tick_is_made_up_for_by_the_next(archive: Archive, instance: dg.DagsterInstance):
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    defs = project_definitions(archive.project())
    result = defs.resolve_sensor_def("discover_letters")(
        dg.build_sensor_context(instance=instance, definitions=defs)
    )
    assert isinstance(result, dg.SensorResult)
    assert [event.partition for event in result.asset_events] == ["a/0001", "b/0001"]


def test_a_change_that_a_killed_tick_found_is_told_by_the_next_and_once(
    archive: Archive, instance: dg.DagsterInstance
):
    defs = discovered(archive, instance)
    sensor = defs.resolve_sensor_def("discover_letters")
    first = sensor(dg.build_sensor_context(instance=instance, definitions=defs))
    assert isinstance(first, dg.SensorResult)
    archive.draw(["a/p0.png"], shade=1)
    (archive.pages / "b/p0.png").unlink()
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    second = sensor(
        dg.build_sensor_context(instance=instance, definitions=defs, cursor=first.cursor)
    )
    assert isinstance(second, dg.SensorResult)
    assert [event.partition for event in second.asset_events] == ["a/0001", "b/0001"]
    for event in second.asset_events:
        instance.report_runless_asset_event(event)
    third = sensor(
        dg.build_sensor_context(instance=instance, definitions=defs, cursor=second.cursor)
    )
    assert isinstance(third, dg.SensorResult)
    assert third.asset_events == []


def test_a_source_that_cannot_be_reached_is_told_and_nothing_is_marked_gone(
    archive: Archive, instance: dg.DagsterInstance
):
    defs = discovered(archive, instance)
    shutil.move(archive.pages, archive.folder / "away")
    result = defs.resolve_sensor_def("discover_letters")(
        dg.build_sensor_context(instance=instance, definitions=defs)
    )
    assert isinstance(result, dg.SensorResult)
    assert result.skip_reason is not None
    assert "pages" in str(result.skip_reason.skip_message)
    with open_engine(archive.project()) as engine:
        assert {row.gone for row in engine.ledger.pages.batches("letters")} == {0}


def test_pages_key_and_steps_do_not_meet():
    assert pages_key("letters") != step_key("letters", "size")
