"""`recipes doctor` asks a cluster that recipes use whether it would take a task of theirs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite

from .archive import Archive, make_archive
from .command_runs import recipes


def on_a_cluster(folder: Path, **cluster: object) -> Archive:
    archive = make_archive(folder / "archive", ["a/1.png"])
    file = archive.folder / "project.yaml"
    project = yaml.safe_load(file.read_text())
    project["places"]["cluster"] = {"kind": "slurm", **cluster}
    file.write_text(yaml.safe_dump(project))
    recipe = archive.folder / "recipes" / "measure.yaml"
    text = yaml.safe_load(recipe.read_text())
    text["steps"][0]["place"] = "cluster"
    recipe.write_text(yaml.safe_dump(text))
    return archive


def found(archive: Archive) -> dict[str, Any]:
    told = recipes(archive, "doctor", "--json")
    return next(each for each in told.document["findings"] if each["about"] == "place cluster")


def test_a_slurm_that_takes_tasks_is_all_right(slurm_site: SlurmSite, tmp_path: Path):
    finding = found(on_a_cluster(tmp_path, scratch=str(slurm_site.home)))
    assert finding["ok"], finding
    assert finding["words"].startswith("slurm")


def test_a_partition_that_is_not_there_is_told(slurm_site: SlurmSite, tmp_path: Path):
    finding = found(on_a_cluster(tmp_path, scratch=str(slurm_site.home), partition="gpu"))
    assert not finding["ok"]
    assert "Change `partition` of the place" in finding["words"]


def test_a_connection_that_a_person_must_open_is_told(
    second_factor_site: SlurmSite, tmp_path: Path
):
    finding = found(
        on_a_cluster(tmp_path, host=HOST, ssh_config=str(second_factor_site.ssh_config))
    )
    assert not finding["ok"]
    assert "type your second factor: recipes connect cluster" in finding["words"]


def test_a_machine_without_slurm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "mkdir", "timeout", "env", "sed"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    finding = found(on_a_cluster(tmp_path, scratch=str(tmp_path / "scratch")))
    assert not finding["ok"]
    assert "squeue" in finding["words"]
