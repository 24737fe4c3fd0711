"""`recipes init`: a new project is valid at once, and the editor's schemas are current."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from recipes_orchestration.errors import ConfigError
from recipes_orchestration.new_project import init_project
from recipes_orchestration.project import load_project
from recipes_orchestration.project_files import Limits, ProjectFile, place_kinds
from recipes_orchestration.project_schemas import SCHEMA_FOLDER, schemas
from recipes_orchestration.recipe_files import RecipeFile

pytestmark = pytest.mark.usefixtures("restored_path")


def test_new_project_is_valid_at_once(tmp_path: Path) -> None:
    paths = init_project(tmp_path / "my archive")
    assert all(path.is_file() for path in paths)
    project = load_project(tmp_path / "my archive")
    assert project.name == "my archive"
    assert project.source("letters").root == str(tmp_path / "my archive" / "pages")
    assert [step.name for step in project.recipe("letters").steps] == [
        *("lines", "read", "names", "embed")
    ]


@pytest.mark.parametrize("name", ['a: "b"', "${HOME}", "no", "é" * 100, "{x}", "# x", "a\nb"])
def test_new_project_takes_any_folder_name(tmp_path: Path, name: str) -> None:
    init_project(tmp_path / name)
    assert load_project(tmp_path / name).name == name.replace("\n", "")


def test_what_is_commented_out_is_valid_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init_project(tmp_path)
    for secret in ("S3_KEY", "S3_SECRET", "PG_PASSWORD"):
        monkeypatch.setenv(secret, "x")
    for name in ("project.yaml", "recipes/letters.yaml"):
        text = (tmp_path / name).read_text()
        opened = re.sub(r"^( *)# ((?:- \{|[a-z_]+:(?: |$)|  +)\S?.*)$", r"\1\2", text, flags=re.M)
        assert opened != text
        (tmp_path / name).write_text(opened)
    (tmp_path / "my_steps.py").write_text("def count_words(page, context):\n    return 1\n")
    project = load_project(tmp_path)
    assert project.limits == Limits()
    assert project.source("letters").storage_options == {"key": "x", "secret": "x"}
    assert project.local.workers == 2
    assert project.ledger_url == "postgresql://recipes:x@db.example.org/recipes"
    assert project.recipe("letters").step("mine").params == {"min_length": 4}


@pytest.mark.parametrize("name", ["project.yaml", "recipes/letters.yaml"])
def test_new_project_never_overwrites(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=rf"has a {name} already; name a folder without one"):
        init_project(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / name).read_text() == "mine"


def test_new_project_leaves_a_gitignore_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    assert tmp_path / ".gitignore" not in init_project(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine"


def test_new_project_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        init_project(tmp_path / "file" / "project")


def test_schemas_are_current() -> None:
    kept = {path.name: path.read_text() for path in SCHEMA_FOLDER.glob("*.json")}
    assert kept == schemas(), "run python -m recipes_orchestration.project_schemas"


def test_each_file_points_its_editor_to_a_schema_that_is_there(tmp_path: Path) -> None:
    init_project(tmp_path)
    for folder in (tmp_path, load_project().folder):
        for name in ("project.yaml", "recipes/letters.yaml"):
            first = (folder / name).read_text().partition("\n")[0]
            found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
            assert found is not None
            schema = json.loads((folder / name).parent.joinpath(found[1]).read_text())
            keys = yaml.safe_load((folder / name).read_text()).keys()
            assert keys <= schema["properties"].keys()


def test_schemas_know_every_key_and_no_other() -> None:
    project, recipe = (json.loads(text) for text in schemas().values())
    assert project["properties"].keys() == ProjectFile.model_fields.keys()
    assert recipe["properties"].keys() == RecipeFile.model_fields.keys()
    assert project["properties"]["places"]["properties"].keys() == place_kinds().keys()
    for schema in (project, recipe):
        for part in [schema, *schema["$defs"].values()]:
            assert part["additionalProperties"] is False
            fields: dict[str, dict[str, Any]] = part["properties"]
            unexplained = {name for name, field in fields.items() if "description" not in field}
            assert unexplained <= {"limits"}  # explained where its $ref leads
