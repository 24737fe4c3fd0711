"""What a valid project folder is read as."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from dagster._core.definitions.utils import DISALLOWED_NAMES
from dagster._utils.schedules import is_valid_cron_string
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from recipes_orchestration.errors import NotFound
from recipes_orchestration.project import LocalSettings, Project, load_project, project_folder
from recipes_orchestration.project_files import PlaceSettings, register_place
from recipes_orchestration.recipe_drafts import in_order
from recipes_orchestration.recipe_files import RESERVED_NAMES, RecipeFile
from recipes_orchestration.yaml_files import ConfigErrors

pytestmark = pytest.mark.usefixtures("restored_path")

PROJECT = "name: archive\nsources:\n  letters: {root: pages}\n"
RECIPE = """\
recipe: letters
source: letters
steps:
  - {name: mine, run: join, needs: [read, lines]}
  - {name: text, run: text}
  - {name: read, run: read, needs: [lines]}
  - {name: lines, run: lines}
"""


def load(folder: Path, project: str = PROJECT, recipe: str = RECIPE) -> Project:
    (folder / "recipes").mkdir(parents=True, exist_ok=True)
    (folder / "project.yaml").write_text(project, encoding="utf-8")
    (folder / "recipes" / "letters.yaml").write_text(recipe, encoding="utf-8")
    return load_project(folder)


def test_example_of_a_checkout_is_the_default() -> None:
    project = load_project()
    assert project.folder.name == "demo"
    assert [step.name for step in project.recipe("letters").steps] == [
        *("lines", "read", "names", "embed", "mine")
    ]
    assert project.recipe("letters").step("mine").params == {"min_length": 4}


def test_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECIPES_PROJECT", str(tmp_path))
    assert project_folder() == tmp_path
    assert project_folder(tmp_path / "given") == tmp_path / "given"


def test_defaults(tmp_path: Path) -> None:
    project = load(tmp_path)
    assert project.name == "archive"
    assert project.library == str(tmp_path / "library")
    assert project.ledger_url == f"sqlite:///{tmp_path}/.recipes/ledger.db"
    assert project.source("letters").root == str(tmp_path / "pages")
    assert project.source("letters").batch_size == 500
    assert project.limits.max_pixels == 150_000_000
    assert project.limits.tries == 2
    assert 1 <= project.local.processes <= 4
    recipe = project.recipe("letters")
    assert (recipe.when, recipe.max_held) == ("manual", 0.05)
    assert recipe.path == str(tmp_path / "recipes" / "letters.yaml")


def test_steps_come_after_what_they_need_and_otherwise_as_written(tmp_path: Path) -> None:
    steps = load(tmp_path).recipe("letters").steps
    assert [step.name for step in steps] == ["text", "lines", "read", "mine"]


def test_lines_of_recipes_and_steps_are_known(tmp_path: Path) -> None:
    lines = load(tmp_path).lines
    assert lines["letters", None] == 1
    assert lines["letters", "read"] == 6


@pytest.mark.parametrize("url", ["s3://bucket/scans", "memory://scans", "/archive/scans"])
def test_urls_and_absolute_paths_stay_as_they_are(tmp_path: Path, url: str) -> None:
    text = f"name: a\nlibrary: {url}/out\nsources:\n  letters: {{root: {url}}}\n"
    project = load(tmp_path, text)
    assert project.library == f"{url}/out"
    assert project.source("letters").root == url


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("sqlite:////var/l.db", "sqlite:////var/l.db"),
        ("sqlite:///l.db", "sqlite:///{folder}/l.db"),
        ("sqlite+pysqlite:///l.db?timeout=9", "sqlite+pysqlite:///{folder}/l.db?timeout=9"),
        ("state/l.db", "sqlite:///{folder}/state/l.db"),
        ("/var/l.db", "sqlite:////var/l.db"),
    ],
)
def test_ledger(tmp_path: Path, given: str, expected: str) -> None:
    project = load(tmp_path, f"{PROJECT}ledger: {given}\n")
    assert project.ledger_url == expected.format(folder=tmp_path)


def test_ledger_path_that_a_url_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"project\.yaml:1: the ledger's path has a \? in it"):
        load(tmp_path / "what?")
    assert load(tmp_path / "what?", PROJECT + "ledger: sqlite:////l.db\n").ledger_url


def test_ledger_of_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECIPES_LEDGER_URL", "postgresql://u@h/other")
    assert load(tmp_path, PROJECT + "ledger: l.db\n").ledger_url == "postgresql://u@h/other"


def test_secrets_come_from_the_environment_and_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    text = (
        "name: ${A_SECRET}\n"
        "ledger: postgresql://u:${A_SECRET}@h/db\n"
        "library_storage_options: {client: {secret: '${A_SECRET}'}}\n"
        "sources:\n  letters: {root: s3://b, storage_options: {secret: '${A_SECRET}', n: 1}}\n"
    )
    project = load(tmp_path, text)
    assert project.ledger_url == "postgresql://u:hunter2@h/db"
    assert project.library_storage_options == {"client": {"secret": "hunter2"}}
    assert project.source("letters").storage_options == {"secret": "hunter2", "n": 1}
    assert project.name == "${A_SECRET}"
    assert "hunter2" not in repr(project)


def test_places_may_stand_empty(tmp_path: Path) -> None:
    assert load(tmp_path, PROJECT + "places:\n  local:\n").local == LocalSettings()
    project = load(tmp_path, PROJECT + "places:\n  local: {workers: 7}\n")
    assert project.local.processes == 7


def test_a_place_that_registers_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(PlaceSettings):
        queue: str

    monkeypatch.setattr("recipes_orchestration.project_files._places", {"local": LocalSettings})
    register_place("elsewhere", Elsewhere)
    project = load(
        tmp_path,
        PROJECT + "places:\n  elsewhere: {queue: long}\n",
        RECIPE.replace("run: text", "run: text, place: elsewhere"),
    )
    assert project.places["elsewhere"] == Elsewhere(queue="long")
    assert project.recipe("letters").step("text").place == "elsewhere"
    with pytest.raises(ValueError, match="registered already"):
        register_place("local", Elsewhere)


def test_folder_is_put_on_the_path_once_for_its_own_steps(tmp_path: Path) -> None:
    (tmp_path / "own_steps_1.py").write_text("def f(page, context):\n    return 1\n")
    recipe = RECIPE.replace("run: text", 'run: "own_steps_1:f"')
    load(tmp_path, recipe=recipe)
    project = load(tmp_path, recipe=recipe)
    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    assert project.recipe("letters").step("text").run == "own_steps_1:f"


def test_dates_and_times_in_params_stay_text(tmp_path: Path) -> None:
    recipe = RECIPE.replace(
        "run: text", "run: text_params_1:f, params: {day: 1891-04-02, at: 12:30, n: 3, x: [1.5]}"
    )
    (tmp_path / "text_params_1.py").write_text("def f(page, context):\n    return 1\n")
    params = load(tmp_path, recipe=recipe).recipe("letters").step("text").params
    assert params == {"day": "1891-04-02", "at": "12:30", "n": 3, "x": [1.5]}


def test_asking_for_what_is_not_there_says_what_is(tmp_path: Path) -> None:
    project = load(tmp_path)
    with pytest.raises(NotFound, match=r'no recipe "leters"; allowed: letters\. Did you mean'):
        project.recipe("leters")
    with pytest.raises(NotFound, match='no source "scans"; allowed: letters'):
        project.source("scans")


def test_reserved_names_are_those_of_dagster() -> None:
    assert frozenset(DISALLOWED_NAMES) == RESERVED_NAMES


_field = st.one_of(
    st.just("*"),
    st.integers(0, 70).map(str),
    st.tuples(st.integers(0, 32), st.integers(0, 32)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
    st.integers(1, 40).map(lambda n: f"*/{n}"),
    st.sampled_from(["L", "?", "mon", "jan", "x", "1,2", "R", "H", "fri#2", "1W"]),
)


@given(st.lists(_field, min_size=5, max_size=5).map(" ".join))
def test_a_cron_line_that_is_taken_is_one_that_dagster_takes(cron: str) -> None:
    content = {"recipe": "a", "source": "a", "when": cron, "steps": [{"name": "a", "run": "text"}]}
    try:
        RecipeFile.model_validate(content)
    except ValidationError:
        return
    assert is_valid_cron_string(cron)


@given(st.permutations(range(6)), st.data())
def test_order_holds_every_step_once_after_its_needs(names: list[int], data: st.DataObject) -> None:
    needs = {name: data.draw(st.sets(st.sampled_from(range(6)))) for name in names}
    needs = {name: {need for need in found if need < name} for name, found in needs.items()}
    ordered = in_order(names, lambda name: name, lambda name: needs[name])
    assert sorted(ordered) == sorted(names)
    assert all(set(ordered[:at]) >= needs[name] for at, name in enumerate(ordered))
    if all(not found for found in needs.values()):
        assert ordered == list(names)
