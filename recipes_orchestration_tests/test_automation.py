"""When a recipe starts by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.asset_daemon_cursor import AssetDaemonCursor

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.recording import record_pages

from .archive import Archive, find_pages, make_archive

pytestmark = pytest.mark.usefixtures("restored_path")

SIZE, AREA = step_key("measure", "size"), step_key("measure", "area")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


class Clock:
    """Ticks of the automation sensor, each going on from the one before."""

    def __init__(self, archive: Archive, instance: dg.DagsterInstance) -> None:
        self.archive, self.instance = archive, instance
        self.defs = project_definitions(archive.project())
        self.cursor: AssetDaemonCursor | None = None

    def discover(self) -> None:
        with open_engine(self.archive.project()) as engine:
            record_pages(engine, self.instance, "letters", find_pages(engine).batches)

    def tick(self, at: datetime | None = None) -> dict[str, set[str]]:
        """Partitions asked for, by step; a step that is not asked for is left out."""
        result = dg.evaluate_automation_conditions(
            defs=self.defs,
            instance=self.instance,
            asset_selection=dg.AssetSelection.assets(SIZE, AREA),
            cursor=self.cursor,
            evaluation_time=at,
        )
        self.cursor = result.cursor
        asked = {key.path[-1]: result.get_requested_partitions(key) for key in (SIZE, AREA)}
        return {step: {str(k) for k in keys} for step, keys in asked.items() if keys}

    def run(self, batch: str) -> bool:
        job = self.defs.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            partition_key=batch,
            asset_selection=[SIZE, AREA],
            raise_on_error=False,
        ).success


def clock(tmp_path: Path, instance: dg.DagsterInstance, when: str) -> Clock:
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"], when=when)
    return Clock(archive, instance)


def both(*batches: str) -> dict[str, set[str]]:
    return {"size": set(batches), "area": set(batches)}


def test_new_pages_start_their_batches_once(tmp_path: Path, instance: dg.DagsterInstance):
    ticks = clock(tmp_path, instance, "new_pages")
    assert ticks.tick() == {}
    ticks.discover()
    assert ticks.tick() == both("a/0001", "b/0001")
    assert ticks.tick() == {}
    assert ticks.run("a/0001")
    assert ticks.run("b/0001")
    assert ticks.tick() == {}


def test_a_changed_page_starts_its_batch_again_and_no_other(
    tmp_path: Path, instance: dg.DagsterInstance
):
    ticks = clock(tmp_path, instance, "new_pages")
    ticks.tick()
    ticks.discover()
    ticks.tick()
    for batch in ("a/0001", "b/0001"):
        assert ticks.run(batch)
    ticks.tick()
    ticks.archive.draw(["b/1.png"], shade=1)
    ticks.discover()
    assert ticks.tick() == both("b/0001")
    assert ticks.tick() == {}


def test_a_batch_that_failed_is_not_asked_for_again_until_it_changes(
    tmp_path: Path, instance: dg.DagsterInstance
):
    ticks = clock(tmp_path, instance, "new_pages")
    ticks.tick()
    (ticks.archive.pages / "a/1.png").write_bytes(b"no picture")
    ticks.discover()
    assert ticks.tick() == both("a/0001", "b/0001")
    assert not ticks.run("a/0001")
    assert ticks.run("b/0001")
    assert [ticks.tick() for _ in range(3)] == [{}, {}, {}]
    ticks.archive.draw(["a/1.png"])
    ticks.discover()
    assert ticks.tick() == both("a/0001")


def test_a_cron_line_starts_what_is_missing_or_behind_after_its_time_only(
    tmp_path: Path, instance: dg.DagsterInstance
):
    ticks = clock(tmp_path, instance, "0 22 * * *")
    ticks.discover()
    year = datetime.now(UTC).year + 1

    def at(day: int, hour: int) -> dict[str, set[str]]:
        return ticks.tick(datetime(year, 1, day, hour, 1, tzinfo=UTC))

    assert at(1, 12) == {}
    assert at(1, 21) == {}
    assert at(1, 22) == both("a/0001", "b/0001")
    assert at(1, 23) == {}
    for batch in ("a/0001", "b/0001"):
        assert ticks.run(batch)
    assert at(2, 22) == {}
    ticks.archive.draw(["b/1.png"], shade=1)
    ticks.discover()
    assert at(3, 12) == {}
    assert at(3, 22) == both("b/0001")


def test_manual_starts_nothing(tmp_path: Path, instance: dg.DagsterInstance):
    ticks = clock(tmp_path, instance, "manual")
    ticks.discover()
    assert all(spec.automation_condition is None for spec in ticks.defs.resolve_all_asset_specs())


def test_the_sensor_runs_by_default_and_starts_runs_not_backfills(
    tmp_path: Path, instance: dg.DagsterInstance
):
    sensor = clock(tmp_path, instance, "manual").defs.resolve_sensor_def("recipes_automation")
    assert isinstance(sensor, dg.AutomationConditionSensorDefinition)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert sensor.emit_backfills is False
