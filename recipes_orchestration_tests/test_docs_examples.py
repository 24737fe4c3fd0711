"""The YAML in README.md and docs/*.md is valid, and what docs/project.md says is complete."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from recipes_orchestration.job_settings import HfJobsSettings, JobSettings, SlurmSettings
from recipes_orchestration.orchestration.instance import DEFAULT_YAML
from recipes_orchestration.place_settings import CloudSettings
from recipes_orchestration.project import Limits, LocalSettings, SourceSettings, load_project
from recipes_orchestration.project_files import PriceSettings, ProjectFile
from recipes_orchestration.project_mistakes import keys_of
from recipes_orchestration.recipe_files import RecipeFile, StepFile
from recipes_orchestration.steps.picture import PictureSettings
from recipes_orchestration.yaml_files import ConfigErrors

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROJECT_KEYS = ProjectFile.model_fields.keys()
RECIPE_KEYS = RecipeFile.model_fields.keys()

BASE_PROJECT = {"name": "docs", "sources": {"letters": {"root": "pages"}}}
BASE_RECIPE = {
    "recipe": "letters",
    "source": "letters",
    "steps": [{"name": "text", "run": "text"}],
}


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that the block's first line names in a comment."""
        found = re.match(r"# ([\w./-]+\.\w+)\s*$", self.text.partition("\n")[0])
        return found[1] if found else None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, found[1].strip(), found[2])
        for found in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.M | re.S)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def is_ours(block: Block) -> bool:
    file = block.file
    return block.kind == "yaml" and (
        file is None or file == "project.yaml" or file.startswith("recipes/")
    )


def write_project(folder: Path, page: str, project: str, recipe: str) -> None:
    (folder / "recipes").mkdir()
    # Prompt files that a page names without showing them.
    (folder / "prompts").mkdir()
    for name in re.findall(r"\bprompts/[\w.-]+\.md\b", recipe):
        (folder / name).write_text("Read the page {page_id}.\n", encoding="utf-8")
    (folder / "project.yaml").write_text(project, encoding="utf-8")
    (folder / "recipes" / "letters.yaml").write_text(recipe, encoding="utf-8")
    for block in BLOCKS:
        if block.kind == "python" and block.file and (block.page == page):
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether every key of a mapping is in the other one with the same value."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part_of(part[key], whole[key]) for key in part)
    return part == whole


def places_before(block: Block) -> dict[str, Any]:
    """The places that the page has shown so far, for the recipes after them."""
    places: dict[str, Any] = {}
    for other in BLOCKS:
        if other.page == block.page and other.line < block.line and is_ours(other):
            places |= yaml.safe_load(re.sub(r"\$\{\w+\}", "x", other.text)).get("places") or {}
    return places


@pytest.mark.parametrize("block", [block for block in BLOCKS if is_ours(block)], ids=str)
def test_yaml_in_the_docs_is_valid(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None
) -> None:
    for name in re.findall(r"\$\{(\w+)\}", block.text):
        monkeypatch.setenv(name, "x")
    # Steps that a page tells of without showing them are those of the example project.
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "demo"))
    value = yaml.safe_load(block.text)
    assert isinstance(value, dict)
    if "concurrency" in value:  # lines of dagster.yaml are those that the package brings along
        brought = yaml.safe_load(DEFAULT_YAML.read_text())
        assert is_part_of(value, brought)
        return
    if value.keys() <= PROJECT_KEYS:
        sources = value.get("sources", BASE_PROJECT["sources"])
        source = next(iter(sources))
        project = yaml.safe_dump(BASE_PROJECT | value)
        recipe = yaml.safe_dump(BASE_RECIPE | {"source": source})
    else:
        assert value.keys() <= RECIPE_KEYS, "neither project.yaml nor a recipe"
        sources = {value.get("source", "letters"): {"root": "pages"}}
        told = {"sources": sources, "places": places_before(block)}
        project = yaml.safe_dump(BASE_PROJECT | told)
        recipe = yaml.safe_dump(BASE_RECIPE | value)
    write_project(tmp_path, block.page, project, recipe)
    load_project(tmp_path)


def test_mistakes_in_the_docs_have_the_messages_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None
) -> None:
    blocks = blocks_of(ROOT / "docs" / "project.md")
    [at] = [index for index, block in enumerate(blocks) if block.kind == "yaml mistakes"]
    write_project(tmp_path, "project.md", yaml.safe_dump(BASE_PROJECT), blocks[at].text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigErrors) as caught:
        load_project(tmp_path)
    assert f"{caught.value}\n" == blocks[at + 1].text


@pytest.mark.parametrize(
    "model",
    [
        *(ProjectFile, SourceSettings, LocalSettings, CloudSettings, PriceSettings, Limits),
        *(RecipeFile, StepFile, PictureSettings),
    ],
)
def test_every_key_is_explained(model: type[BaseModel]) -> None:
    text = (ROOT / "docs" / "project.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\|(?: `local` \|)? `(\w+)` \|", text, flags=re.M))
    assert set(keys_of(model)) - explained == set()


@pytest.mark.parametrize(
    ("page", "model"), [("slurm.md", SlurmSettings), ("hf_jobs.md", HfJobsSettings)]
)
def test_settings_of_job_places_are_explained_with_their_defaults(
    page: str, model: type[JobSettings]
) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.M))
    assert told.keys() == {"kind", *keys_of(model)}
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if field.is_required():
            assert told[name] == "required"
        elif default is not None:
            shown = yaml.safe_load(told[name].strip("`"))
            assert (tuple(shown) if isinstance(default, tuple) else shown) == default


@pytest.mark.parametrize("model", [SourceSettings, Limits])
def test_defaults_in_the_docs_are_those_of_the_models(model: type[Limits]) -> None:
    text = (ROOT / "docs" / "project.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| `?([\w.{}\[\]]+)`? \|", text, flags=re.M))
    for name, field in model.model_fields.items():
        if not field.is_required():
            assert yaml.safe_load(told[name]) == field.get_default(call_default_factory=True)
