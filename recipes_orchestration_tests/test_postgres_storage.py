"""deploy/dagster.yaml: Dagster's storage and the ledger on one PostgreSQL server."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy.engine import make_url

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.recording import record_pages

from .archive import find_pages, make_archive

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

DEPLOY = Path(__file__).parent.parent / "deploy" / "dagster.yaml"


def test_a_recipe_runs_with_everything_on_postgresql(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
):
    url = make_url(postgres_url)
    parts = {
        "HOST": url.host,
        "PORT": url.port,
        "USER": url.username,
        "PASSWORD": url.password,
        "DB": url.database,
    }
    for name, value in parts.items():
        monkeypatch.setenv(f"DAGSTER_POSTGRES_{name}", str(value))
    monkeypatch.setenv("RECIPES_LEDGER_URL", postgres_url)
    shutil.copyfile(DEPLOY, tmp_path / "dagster.yaml")
    archive = make_archive(tmp_path / "project", ["a/1.png", "b/1.png"])
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert "Postgres" in type(instance.event_log_storage).__name__
        with open_engine(archive.project()) as engine:
            assert engine.ledger.url_shown.startswith("postgresql")
            record_pages(engine, instance, "letters", find_pages(engine).batches)
        job = project_definitions(archive.project()).resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance, partition_key="a/0001")
        assert result.success
    with dg.DagsterInstance.from_config(str(tmp_path)) as again:
        assert again.get_materialized_partitions(step_key("measure", "area")) == {"a/0001"}
    assert not list(archive.folder.glob("**/*.db"))
