"""What goes beside the pages: the values that steps need and the project's own modules."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.errors import PlaceError
from recipes_orchestration.places.task_folders import project_code
from recipes_orchestration.places.task_folders.packaging import Packaging
from recipes_orchestration.places.task_folders.project_code import pack_code
from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.task_folder import read_manifest

from .packed_work import COLOUR, jpeg, spec_of, works_of

NAME = f"colour-{'0' * 32}"
OWN = Step("mine", "my_steps.deep:mine", "1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in (
        "my_steps/__init__.py",
        "my_steps/deep.py",
        "beside.py",
        "notes.txt",
        ".secret.py",
        ".venv/lib/a.py",
        "env/pyvenv.cfg",
        "env/b.py",
        "library/c.py",
        "pages/d.py",
        "__pycache__/e.py",
        "not-a-module/f.py",
        "scans/g.py",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    (folder / "link.py").symlink_to("/etc/hostname")
    return folder


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def code_of(tmp_path: Path, project: Path, step: Step = OWN) -> str | None:
    return pack_code(tmp_path / "batch", [step], str(project), [str(project / "scans")])


def test_the_projects_modules_go_and_nothing_else(tmp_path: Path, project: Path):
    place = code_of(tmp_path, project)
    assert place is not None
    assert files_in(tmp_path / "batch" / place) == [
        "beside.py",
        "my_steps/__init__.py",
        "my_steps/deep.py",
    ]


@pytest.mark.parametrize("run", ["lines", "json:dumps", "../my_steps:mine"])
def test_no_module_goes_for_a_step_that_is_none_of_the_projects(
    tmp_path: Path, project: Path, run: str
):
    assert code_of(tmp_path, project, replace(OWN, run=run)) is None


def test_changed_modules_are_another_folder(tmp_path: Path, project: Path):
    first = code_of(tmp_path, project)
    assert code_of(tmp_path, project) == first
    (project / "beside.py").write_text("# changed\n")
    assert code_of(tmp_path, project) != first
    assert len(os.listdir(tmp_path / "batch" / "code")) == 2


def test_too_much_code_is_refused_in_words(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(project_code, "MAX_CODE_FILES", 2)
    with pytest.raises(PlaceError, match="more than 2 Python files"):
        code_of(tmp_path, project)


def test_the_manifest_names_the_code(tmp_path: Path, project: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["mine"])
    spec = spec_of(tmp_path / "scans", works, [OWN], str(project))
    with Packaging(tmp_path / "batch") as packaging:
        task = packaging.pack(spec)
        folder = packaging.write(NAME, task)
    code = read_manifest(folder).code
    assert code is not None
    assert (folder / code / "my_steps" / "deep.py").is_file()
    assert task.code in task.files


def needing(tmp_path: Path, needs: dict[str, Any], steps: tuple[str, ...]) -> Path:
    chain = [
        replace(COLOUR, name="first", needs=("before",)),
        replace(COLOUR, name="second", needs=("first", "early")),
    ]
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, steps)
    works = [replace(work, needs=needs) for work in works]
    with Packaging(tmp_path / "batch") as packaging:
        return packaging.write(NAME, packaging.pack(spec_of(tmp_path / "scans", works, chain)))


def lines_of(folder: Path) -> list[Any]:
    data = (folder / "needs.jsonl").read_bytes()
    return [json.loads(line) for line in data.split(b"\n") if line]


def test_values_from_elsewhere_go_with_the_task(tmp_path: Path):
    needs = {"before": {"text": "a\u2028b"}, "early": [1], "other": "of no use"}
    folder = needing(tmp_path, needs, ("first", "second"))
    assert read_manifest(folder).needs
    assert lines_of(folder) == [
        {"page_id": "a.jpg", "step": "before", "value": {"text": "a\u2028b"}},
        {"page_id": "a.jpg", "step": "early", "value": [1]},
    ]


def test_values_of_a_step_that_is_not_run_again_go_too(tmp_path: Path):
    folder = needing(tmp_path, {"first": 1, "early": 2, "before": 3}, ("second",))
    assert [line["step"] for line in lines_of(folder)] == ["first", "early"]


def test_the_same_task_written_again_is_left_as_it_is(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    with Packaging(tmp_path / "batch") as packaging:
        task = packaging.pack(spec_of(tmp_path / "scans", works))
        folder = packaging.write(NAME, task)
        before = (folder / "manifest.json").stat().st_ino
        packaging.write(NAME, task)
    assert (folder / "manifest.json").stat().st_ino == before
    assert folder == tmp_path / "batch" / NAME / "0"
