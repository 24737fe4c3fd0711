"""`recipes doctor` asks the places that take jobs, and wants no packages here for their steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.rehearsal.slurm_site import SlurmSite

from .archive import Archive
from .command_runs import recipes
from .job_archive import make_job_archive, slurm_place

pytestmark = pytest.mark.usefixtures("restored_path")


@pytest.mark.slow
def test_a_cluster_that_answers(tmp_path: Path, slurm_site: SlurmSite) -> None:
    archive = make_job_archive(tmp_path / "project", slurm_place(slurm_site, tmp_path), pages=1)
    found = findings(archive)
    assert found["place slurm"] == (True, "it answers.")
    assert {about for about in found if about.startswith("step ")} == {"step job_steps:words"}


def test_a_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    archive = make_job_archive(tmp_path / "project", {}, pages=1)
    ok, words = findings(archive)["place slurm"]
    assert ok is False
    assert "slurm" in words


def findings(archive: Archive) -> dict[str, tuple[bool | None, str]]:
    """What the doctor says of each thing."""
    told = recipes(archive, "doctor", "--json").document["findings"]
    return {each["about"]: (each["ok"], each["words"]) for each in told}
