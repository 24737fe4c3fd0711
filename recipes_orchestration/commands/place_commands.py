"""`recipes tasks`, `spend` and `connect`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json, MaybeRecipe, Project

__all__ = ["register"]


def tasks(
    recipe: MaybeRecipe = None,
    all_tasks: Annotated[
        bool, typer.Option("--all", help="The last 200 tasks, open or not, and what they took.")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """List what is open at each place, asked there now, and the places that are paused."""
    if all_tasks:
        from .task_records import show_records

        show_records(project, recipe, as_json=json)
        return
    from .tasks_at_places import show_tasks

    show_tasks(project, recipe, as_json=json)


def spend(
    recipe: MaybeRecipe = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY",
            help="Sums by recipe, step, place, model, price or day; may be given several times.",
        ),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print the sums as CSV on stdout.")] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """Show what was paid to places and is reserved, what was wasted, and what batches saved."""
    from .spending import show_spend

    show_spend(project, recipe, by=by or (), as_csv=csv, as_json=json)


def connect(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A Slurm place with a host.")],
    project: Project = None,
    json: Json = False,
) -> None:
    """Open the connection to a cluster, where you type your second factor once."""
    from .connecting import connect_place

    connect_place(project, place, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (tasks, spend, connect):
        app.command()(command)
