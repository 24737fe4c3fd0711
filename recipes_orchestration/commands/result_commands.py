"""`recipes status`, `show`, `held` and `export`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Folder, Json, MaybeRecipe, Project, RecipeName, Steps

__all__ = ["register"]

PageId = Annotated[
    str,
    typer.Argument(metavar="PAGE", help="The page's path below the source, such as a/p.pdf#0003."),
]


def status(
    recipe: MaybeRecipe = None,
    folder: Folder = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Show how far each folder is at each step."""
    from .standing import show_status

    show_status(project, recipe, folder=folder, as_json=json)


def show(page: PageId, project: Project = None, json: Json = False) -> None:
    """Show everything that is known about one page."""
    from .showing import show_page

    show_page(project, page, as_json=json)


def held(
    recipe: MaybeRecipe = None,
    folder: Folder = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """List the pages that wait for a person, and why."""
    from .holding import show_held

    show_held(project, recipe, folder=folder, as_json=json)


def export(
    recipe: RecipeName,
    step: Steps = None,
    format: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="text, jsonl, csv, parquet or page-xml."),
    ] = "text",
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="DIR_OR_URL",
            help="Where it goes: a folder, a URL, or for jsonl, csv and parquet a file.",
        ),
    ] = None,
    folder: Folder = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Write results as text files, JSONL, CSV, Parquet or PAGE XML."""
    from .exporting import Wanted, export_results

    wanted = Wanted(recipe, tuple(step or ()), format, out, folder)
    export_results(project, wanted, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (status, show, held, export):
        app.command()(command)
