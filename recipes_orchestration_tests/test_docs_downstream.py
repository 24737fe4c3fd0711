from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.recording import record_pages

from .archive import find_pages, make_archive

DOC = Path(__file__).parent.parent / "docs" / "downstream.md"


def test_the_downstream_example_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_path: None
):
    archive = make_archive(tmp_path / "project", ["a/1.png", "a/page-with-a-long-name.png"])
    recipe = archive.folder / "recipes" / "measure.yaml"
    recipe.write_text(
        recipe.read_text()
        .replace("recipe: measure", "recipe: letters")
        .replace("name: area", "name: read")
    )
    monkeypatch.setenv("RECIPES_PROJECT", str(archive.folder))
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    module: dict[str, object] = {"__name__": "my_location"}
    exec(compile(code, str(DOC), "exec"), module)
    defs = module["defs"]
    assert isinstance(defs, dg.Definitions)
    with dg.DagsterInstance.ephemeral() as instance:
        with open_engine(archive.project()) as engine:
            record_pages(engine, instance, "letters", find_pages(engine).batches)
        job = defs.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance, partition_key="a/0001")
        frame = result.output_for_node("long_letters")
    assert list(frame["page_id"]) == ["a/page-with-a-long-name.png"]
