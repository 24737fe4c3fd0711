"""Which runs wait for a pool: those whose steps are all here, and no others."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from recipes_orchestration.orchestration.code_location import project_definitions
from recipes_orchestration.project import load_project

pytestmark = pytest.mark.usefixtures("restored_path")

PLACES = """\
places:
  cluster: {kind: slurm}
  hub: {kind: hf_jobs, namespace: archive, bucket: archive/recipes}
"""


def stages(folder: Path, place: str) -> dict[str, dg.AssetsDefinition]:
    """The stages of a recipe whose first steps are at the place and the last is here."""
    (folder / "recipes").mkdir()
    (folder / "project.yaml").write_text(
        f"name: archive\nsources: {{letters: {{root: pages}}}}\n{PLACES}"
    )
    (folder / "recipes" / "letters.yaml").write_text(
        "recipe: letters\nsource: letters\nsteps:\n"
        f"  - {{name: lines, run: lines, place: {place}}}\n"
        f"  - {{name: read, run: read, place: {place}, needs: [lines]}}\n"
        "  - {name: names, run: names, needs: [read]}\n"
    )
    found = project_definitions(load_project(folder)).assets or ()
    assets = [asset for asset in found if isinstance(asset, dg.AssetsDefinition)]
    named = {asset.op.name.partition("__")[2]: asset for asset in assets}
    return {name: asset for name, asset in named.items() if name != "sheet"}


def pools(folder: Path, place: str) -> dict[str, str | None]:
    return {name: stage.op.pool for name, stage in stages(folder, place).items()}


def test_runs_of_a_recipe_that_is_all_here_share_a_pool(tmp_path: Path) -> None:
    assert pools(tmp_path, "local") == {"lines_to_names": "local"}


@pytest.mark.parametrize("place", ["cluster", "slurm", "hub"])
def test_a_recipe_with_jobs_has_no_pool_so_that_a_batch_is_worked_on_while_others_wait(
    tmp_path: Path, place: str
) -> None:
    assert pools(tmp_path, place) == {"lines_to_read": None, "names": None}


@pytest.mark.parametrize(("place", "kind"), [("cluster", "slurm"), ("hub", "hf_jobs")])
def test_assets_show_of_which_kind_their_place_is(tmp_path: Path, place: str, kind: str) -> None:
    stage = stages(tmp_path, place)["lines_to_read"]
    specs = {spec.key.path[-1]: spec for spec in stage.specs}
    assert kind in specs["read"].kinds
    assert stage.op.tags["recipes/place"] == place
