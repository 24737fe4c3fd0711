"""The sheet of a recipe as an asset: materialized by a person who wants to see it."""

# No postponed annotations here: Dagster reads the types of context and config as they stand.
from typing import Any, Optional

import dagster as dg
from pydantic import Field

from ..engine.engine import open_engine
from ..engine.sheet import Scope, Sheet, sheet_of
from ..engine.sheet_words import markdown, sheet_document
from ..errors import RecipesError
from ..project import Project
from ..recipe import Recipe
from ..stages import stages_of

__all__ = ["GROUP", "SheetConfig", "sheet_assets", "sheet_key"]

GROUP = "sheets"
"""A group of their own: a recipe's own has steps only, so that it is backfilled as a whole."""


class SheetConfig(dg.Config):
    """The part of the recipe that is asked about."""

    # Dagster's configuration knows no `str | None`.
    folder: Optional[str] = Field(  # noqa: UP045
        default=None, description="Only this folder of the source and those below it."
    )
    now: bool = Field(default=False, description="As it would be with plain calls only.")


def sheet_key(recipe: Recipe) -> dg.AssetKey:
    """The asset key of a recipe's sheet."""
    return dg.AssetKey([recipe.name, _word(recipe)])


def _word(recipe: Recipe) -> str:
    """`sheet`, unless a step or stage has that name."""
    taken = {step.name for step in recipe.steps} | {stage.name for stage in stages_of(recipe)}
    word = "sheet"
    while word in taken:
        word = f"the_{word}"
    return word


def sheet_assets(project: Project) -> list[dg.AssetsDefinition]:
    """One of each recipe."""
    return [_sheet_asset(project, recipe) for recipe in project.recipes.values()]


def _sheet_asset(project: Project, recipe: Recipe) -> dg.AssetsDefinition:
    @dg.asset(
        key=sheet_key(recipe),
        group_name=GROUP,
        kinds={"table"},
        description=f"What a run of {recipe.name} would send, how long it would take and what it "
        "would cost. Materialize it to see it; nothing is sent.",
    )
    def sheet(context: dg.AssetExecutionContext, config: SheetConfig) -> dg.MaterializeResult[Any]:
        try:
            with open_engine(project) as engine:
                made = sheet_of(engine, recipe, Scope(config.folder, now=config.now))
        except RecipesError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        context.log.info("%s", markdown(made))
        return dg.MaterializeResult(metadata=_metadata(made))

    return sheet


def _metadata(sheet: Sheet) -> dict[str, Any]:
    """The table, and its sums as numbers, which Dagster plots over time."""
    metadata: dict[str, Any] = {
        "sheet": dg.MetadataValue.md(markdown(sheet)),
        "document": dg.MetadataValue.json(sheet_document(sheet)),
        "pages": sheet.pages,
        "tasks": sum(line.tasks for line in sheet.lines),
        "reused": sum(line.reused for line in sheet.lines),
    }
    if sheet.usd is not None:
        metadata |= {
            "usd": float(sheet.usd.mid),
            "usd_low": float(sheet.usd.low),
            "usd_high": float(sheet.usd.high),
        }
    return metadata
