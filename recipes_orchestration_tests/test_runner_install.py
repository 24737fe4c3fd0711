"""The far side's install: small, and without what only the sending machine needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import recipes_orchestration
from recipes_orchestration.recipe import Step

from .task_folders import AREA, SIZE, TaskFolder, make_task, values_of

CHECKOUT = Path(recipes_orchestration.__file__).parent.parent
MAX_MB = 60
TOOLS = ("pip", "setuptools", "wheel", "_distutils_hack", "distutils-precedence.pth")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd="/",
    )


@pytest.fixture(scope="module")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the extra `runner` and nothing else."""
    uv = Path(sys.executable).with_name("uv")
    if not (CHECKOUT / "pyproject.toml").exists() or not uv.exists():
        pytest.skip("needs a checkout and uv, which `make install` brings")
    home = tmp_path_factory.mktemp("far")
    run(uv, "venv", "-q", "--python", sys.executable, home / "venv").check_returncode()
    python = home / "venv" / "bin" / "python"
    what = [*("-c", CHECKOUT / "constraints.txt"), f"{CHECKOUT}[runner]"]
    done = run(uv, "pip", "install", "-q", "--compile-bytecode", "--python", python, *what)
    if done.returncode:
        if any(word in done.stderr for word in ("error sending request", "dns", "connect")):
            pytest.skip(f"needs the network for the packages: {done.stderr.strip()[-300:]}")
        pytest.fail(done.stderr)
    return python.parent


@pytest.mark.slow
def test_it_is_below_60_mb(far_side: Path):
    [packages] = (far_side.parent / "lib").glob("python*/site-packages")
    size = sum(
        each.stat().st_size
        for top in packages.iterdir()
        if not top.name.startswith(TOOLS)
        for each in ([top] if top.is_file() else top.rglob("*"))
        if each.is_file()
    )
    assert size / 1e6 < MAX_MB


@pytest.mark.slow
def test_it_brings_nothing_of_the_sending_side(far_side: Path):
    [packages] = (far_side.parent / "lib").glob("python*/site-packages")
    names = {each.name.partition("-")[0].lower() for each in packages.iterdir()}
    assert "dagster_pipes" in names
    assert names.isdisjoint(
        {"dagster", "sqlalchemy", "alembic", "pyarrow", "pandas", "numpy", "typer", "rich", "grpc"}
        | {"anthropic", "openai", "google", "boto3", "huggingface_hub", "pebble", "psutil"}
    )


@pytest.mark.slow
def test_it_runs_a_task(far_side: Path, tmp_path: Path):
    pages = ["a/1.png", "a/2.png"]
    task = make_task(tmp_path, pages, steps=[SIZE, AREA, Step("text", "text", "1")])
    done = run(far_side / "recipes-runner", task.path, SEEN=str(tmp_path / "seen"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected = values_of(pages) | {(page, "text"): {"text": ""} for page in pages}
    assert task.results() == expected
    assert [each["method"] for each in task.messages()][-1] == "closed"


@pytest.mark.slow
def test_a_step_whose_extra_is_not_installed_refuses_the_task(far_side: Path, tmp_path: Path):
    task: TaskFolder = make_task(
        tmp_path, ["1.png"], steps=[Step("names", "names", "1 spacy-3.8-sm")]
    )
    done = run(far_side / "recipes-runner", task.path)
    assert done.returncode == 3
    assert "install it with: pip install 'recipes-orchestration[nlp]'" in done.stderr
    assert task.outcome()["failure"] in done.stderr


@pytest.mark.slow
def test_the_command_recipes_says_what_to_install(far_side: Path):
    done = run(far_side / "recipes", "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "The command recipes needs typer; install it with: "
        "pip install 'recipes-orchestration[orchestration]'.\n"
    )


@pytest.mark.slow
def test_a_runner_without_dagster_pipes_says_what_to_install(far_side: Path, tmp_path: Path):
    task = make_task(tmp_path, ["1.png"], steps=[SIZE])
    hidden = "import sys; sys.modules['dagster_pipes'] = None; "
    program = f"{hidden}from recipes_orchestration.runner.main import main; main([sys.argv[1]])"
    done = run(far_side / "python", "-c", program, task.path)
    assert done.returncode == 3
    assert "pip install 'recipes-orchestration[runner]'" in json.dumps(task.outcome()["failure"])
