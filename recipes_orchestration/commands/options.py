"""The options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "JSON",
    "Folder",
    "Json",
    "MayLeave",
    "MaybeRecipe",
    "NoDagster",
    "Project",
    "RecipeName",
    "Steps",
]

JSON = "recipes.json"
"""Where the context's meta remembers that `--json` was given."""


def _remember(context: typer.Context, given: bool) -> bool:
    context.meta[JSON] = given
    return given


Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout.", callback=_remember),
]
MayLeave = Annotated[
    bool,
    typer.Option(
        "--pages-may-leave",
        help="Your yes for this run: its pages may go to the places of its steps.",
    ),
]
Project = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="DIR",
        help="The project folder; else RECIPES_PROJECT, else the example.",
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="Only this folder of the source and those below it."
    ),
]
Steps = Annotated[
    list[str] | None,
    typer.Option("--step", metavar="STEP", help="Only this step; may be given several times."),
]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="The recipe's name.")]
MaybeRecipe = Annotated[
    str | None, typer.Argument(metavar="[RECIPE]", help="One recipe; all when none is named.")
]
NoDagster = Annotated[
    bool, typer.Option("--no-dagster", help="Do not tell the Dagster instance what was done.")
]
