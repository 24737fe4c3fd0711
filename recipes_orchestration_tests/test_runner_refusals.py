"""Tasks that cannot be done at all: exit code 3, and an outcome that says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.task_folder import MANIFEST, NEEDS

from .task_folders import AREA, SIZE, TaskFolder, make_task


def refused(task: TaskFolder) -> str:
    """The words with which the task was refused, said and written."""
    said = task.run(3)
    outcome = task.outcome()
    assert outcome["complete"] is False
    assert outcome["failure"] in said
    assert "Traceback" not in said
    return outcome["failure"]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Step("x", "nothing_here:size", "1"), "The module of 'nothing_here:size' was not found"),
        (Step("x", "own_steps:sise", "1"), "did you mean 'size'"),
        (Step("x", "txt", "1"), "There is no operation 'txt' (did you mean 'text'?)"),
        (replace(SIZE, version="7"), "planned with version 7 of 'own_steps:size' and here is 1"),
        (Step("text", "text", "1", params={"dpi": 3}), "'dpi' is not known"),
        (
            replace(SIZE, params={"name": "one", "cannot_load": True}),
            "Step 'size' could not be set up: OSError: the weights are not there",
        ),
    ],
)
def test_a_step_that_cannot_be_loaded_refuses_the_task(tmp_path: Path, step: Step, words: str):
    task = make_task(tmp_path, ["1.png"], steps=[step])
    assert words in refused(task)
    assert not task.results()


def test_another_version_of_the_runner_refuses_the_task(tmp_path: Path):
    words = refused(make_task(tmp_path, ["1.png"], runner="99.1"))
    assert "sent by recipes-orchestration 99.1 and here is" in words
    assert "pip install 'recipes-orchestration[runner]==99.1'" in words


def test_a_folder_of_code_that_did_not_come_along_is_said(tmp_path: Path):
    words = refused(make_task(tmp_path, ["1.png"], code="../../code/missing"))
    assert words == "The folder ../../code/missing with the project's steps did not come along."


def no_json(task: TaskFolder) -> None:
    (task.path / MANIFEST).write_text("{")


def other_format(task: TaskFolder) -> None:
    found: dict[str, Any] = json.loads((task.path / MANIFEST).read_bytes())
    (task.path / MANIFEST).write_text(json.dumps({**found, "format": 2}))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_json, "is not right"),
        (other_format, "its format is 2"),
        (lambda task: (task.path / MANIFEST).unlink(), "manifest.json: No such file"),
    ],
)
def test_a_manifest_that_is_not_right_refuses_the_task(
    tmp_path: Path, spoil: Callable[[TaskFolder], None], words: str
):
    task = make_task(tmp_path, ["1.png"])
    spoil(task)
    assert words in refused(task)
    assert task.outcome()["task"] == "stage-1_0"


@pytest.mark.parametrize("damage", [b"{\n", b'{"page_id": "1.png"}\n', b"\xff\xff\n"])
def test_damaged_needs_refuse_the_task(tmp_path: Path, damage: bytes):
    task = make_task(tmp_path, ["1.png"], steps=[AREA], needs={})
    (task.path / NEEDS).write_bytes(damage)
    assert f"{NEEDS} of the task is damaged at byte 0" in refused(task)


def test_what_was_written_before_a_refusal_is_kept(tmp_path: Path):
    broken = replace(AREA, params={"name": "two", "cannot_load": True})
    task = make_task(tmp_path, ["1.png", "2.png"], steps=[SIZE, broken])
    assert "'area' could not be set up" in refused(task)
    assert [step["landed"] for step in task.outcome()["steps"]] == [2, 0]
    assert len(task.results()) == 2


def test_a_refused_task_that_is_run_again_is_tried_again(tmp_path: Path):
    task = make_task(tmp_path, ["1.png"], code="../../code/later")
    refused(task)
    (task.batch / "code" / "abc").rename(task.batch / "code" / "later")
    task.run()
    assert task.outcome()["complete"]


def test_a_full_disk_refuses_the_task_and_keeps_what_was_written(tmp_path: Path):
    """A bound on the size of files stands for the disk: only the results come near it."""
    pages = [f"{n}.png" for n in range(10)]
    task = make_task(tmp_path, pages, steps=[Step("long", "own_steps:long", "1")])
    command = (
        f"ulimit -f 64; exec {sys.executable} -m recipes_orchestration.runner.main {task.path}"
    )
    environment = {**os.environ, "SEEN": str(tmp_path / "seen")}
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    assert ran.returncode == 3
    assert "results.jsonl cannot be written: File too large. Make room there" in ran.stderr
    assert task.outcome()["failure"] in ran.stderr
    assert 1 <= len(task.results()) < 10
    task.run()
    assert len(task.results()) == 10


def test_a_folder_that_is_not_there_is_said(tmp_path: Path):
    task = TaskFolder(tmp_path)
    (tmp_path / "stage-1").write_text("a file")
    assert "cannot be used: Not a directory" in task.run(3)
