"""A place whose key is not set here keeps nothing else from being watched over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.rehearsal import Rehearsal, Script

from .cloud_archive import advance_once, make_cloud_archive, read_step


def test_a_place_without_its_key_does_not_stop_the_polling_of_another(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECOND_KEY", "rehearsal-key")
    steps = [read_step("anthropic"), read_step("openai", name="again")]
    archive = make_cloud_archive(tmp_path, steps=steps)
    file = archive.folder / "project.yaml"
    project = json.loads(file.read_text())
    project["places"]["openai"] = {"batch_from": 1, "api_key_env": "SECOND_KEY"}
    file.write_text(json.dumps(project))
    for provider in ("anthropic", "openai"):
        rehearsal.script(provider, Script(never_ends=True))
    with archive.engine() as engine:
        for step in ("read", "again"):
            assert advance_once(engine, step).open == 1
    monkeypatch.delenv("SECOND_KEY")
    rehearsal.finish("anthropic")
    with archive.engine() as engine:
        polled = {each.task.place: each for each in poll_open(engine).values()}
    assert polled["anthropic"].ended
    assert not polled["openai"].ended
    assert "SECOND_KEY" in polled["openai"].words
