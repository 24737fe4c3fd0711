"""`recipes doctor` asks Hugging Face Jobs, and wants no packages here for steps that run there."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.rehearsal import Rehearsal

from .archive import Archive
from .command_runs import recipes
from .hub_archive import hub_archive

pytestmark = pytest.mark.usefixtures("restored_path")


def findings(archive: Archive) -> dict[str, tuple[bool | None, str]]:
    """What the doctor says of each thing."""
    told = recipes(archive, "doctor", "--json").document["findings"]
    return {each["about"]: (each["ok"], each["words"]) for each in told}


def test_a_hub_that_answers(tmp_path: Path, hub: Rehearsal) -> None:
    found = findings(hub_archive(tmp_path, hub, pages=1))
    assert found["place hf_jobs"] == (True, "it answers.")
    assert {about for about in found if about.startswith("step ")} == {"step job_steps:words"}


def test_a_token_that_is_not_taken(
    tmp_path: Path, hub: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = hub_archive(tmp_path, hub, pages=1)
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    ok, words = findings(archive)["place hf_jobs"]
    assert ok is False
    assert "hf_another" not in words


def test_a_token_that_is_not_set(
    tmp_path: Path, hub: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = hub_archive(tmp_path, hub, pages=1)
    monkeypatch.delenv("HF_TOKEN")
    ok, words = findings(archive)["place hf_jobs"]
    assert (ok, "HF_TOKEN, which is not set" in words) == (False, True)
