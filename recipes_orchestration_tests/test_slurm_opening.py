"""A cluster opened as the project says."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from recipes_orchestration.engine.jobs import open_shell, open_slurm_place
from recipes_orchestration.engine.opening import open_place
from recipes_orchestration.places.slurm.shell import LocalShell
from recipes_orchestration.places.slurm.slurm_place import Rung, SlurmPlace, SlurmRules
from recipes_orchestration.places.slurm.ssh_shell import SshShell
from recipes_orchestration.project import Project, load_project

pytestmark = pytest.mark.usefixtures("restored_path")

ALL: dict[str, Any] = {
    "scratch": "/scratch/alice",
    "runner": "my-runner",
    "setup": ["a", "b"],
    "modules": ["python/3.11"],
    "container": "image.sif",
    "container_run": "singularity exec",
    "account": "hist",
    "partition": "main",
    "qos": "long",
    "gres": "gpu:1",
    "time": "02:00:00",
    "mem": "8G",
    "cpus": 4,
    "extra": ["--constraint=a100"],
    "parallel": 3,
    "pages_per_task": 50,
    "task_minutes": 30.0,
    "max_open": 5,
    "ladder": [{"time": "04:00:00"}, {"mem": "16G"}],
    "settle_seconds": 7.0,
}
RECIPE = """\
recipe: sizes
source: letters
steps:
  - {name: lines, run: lines, place: cluster}
"""


def project_with(folder: Path, **settings: Any) -> Project:
    (folder / "pages").mkdir()
    (folder / "recipes").mkdir()
    content = {
        "name": "archive",
        "sources": {"letters": {"root": "pages"}},
        "places": {"cluster": {"kind": "slurm", **settings}},
    }
    (folder / "project.yaml").write_text(yaml.safe_dump(content))
    (folder / "recipes" / "sizes.yaml").write_text(RECIPE)
    return load_project(folder)


def test_every_setting_reaches_the_place(tmp_path: Path):
    assert {each.name for each in fields(SlurmRules)} == set(ALL)
    place = open_place(project_with(tmp_path, **ALL), "cluster")
    assert isinstance(place, SlurmPlace)
    expected: dict[str, Any] = dict(ALL)
    for name in ("setup", "modules", "extra"):
        expected[name] = tuple(ALL[name])
    expected["ladder"] = (Rung(time="04:00:00"), Rung(mem="16G"))
    assert place._rules == SlurmRules(**expected)
    assert (place.name, place.max_open, place.settle_seconds) == ("cluster", 5, 7.0)


def test_what_is_not_said_is_the_same_on_both_sides(tmp_path: Path):
    place = open_slurm_place(project_with(tmp_path), "cluster")
    assert place._rules == SlurmRules()


def test_without_a_host_this_machine_is_the_login_node(tmp_path: Path):
    assert isinstance(open_shell(project_with(tmp_path), "cluster"), LocalShell)


def test_an_ssh_configuration_lies_beside_the_project(tmp_path: Path):
    project = project_with(tmp_path, host="mini", ssh_config="ssh/config")
    shell = open_shell(project, "cluster")
    assert isinstance(shell, SshShell)
    (tmp_path / "ssh").mkdir()
    (tmp_path / "ssh" / "config").write_text("Host mini\n  ControlPath /run/of-mini\n")
    assert ["-F", str(tmp_path / "ssh" / "config")] == shell.options()[-2:]
