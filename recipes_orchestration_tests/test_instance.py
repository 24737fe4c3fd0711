from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.orchestration.instance import DEFAULT_YAML, dagster_home, open_instance

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def without_home(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def test_a_checkout_and_an_installed_package_have_the_same_settings():
    assert (ROOT / "dagster.yaml").read_text() == DEFAULT_YAML.read_text()


def test_dagster_home_is_the_nearest_one_above_the_project(tmp_path: Path):
    (tmp_path / ".dagster").mkdir()
    assert dagster_home(tmp_path / "examples" / "demo") == tmp_path / ".dagster"


def test_dagster_home_lies_in_the_project_when_there_is_none_above(tmp_path: Path):
    assert dagster_home(tmp_path / "demo") == tmp_path / "demo" / ".dagster"


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "given"))
    assert dagster_home(tmp_path) == tmp_path / "given"


def test_a_new_instance_has_no_telemetry_and_one_local_run_at_a_time(tmp_path: Path):
    with open_instance(tmp_path) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1


def test_a_run_that_is_let_go_while_the_code_is_restarted_waits_for_it(tmp_path: Path):
    with open_instance(tmp_path) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        minutes = queue.max_user_code_failure_retries * queue.user_code_failure_retry_delay / 60
        assert minutes >= 5
        # The section beside it takes nothing from the limits.
        assert queue.tag_concurrency_limits == [
            {"key": "recipes/await", "value": "open", "limit": 0}
        ]
