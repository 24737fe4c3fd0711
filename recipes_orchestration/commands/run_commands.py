"""`recipes plan`, `run`, `backfill` and `dev`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Folder, Json, MayLeave, NoDagster, Project, RecipeName, Steps

__all__ = ["register"]

Batches = Annotated[
    list[str] | None,
    typer.Option(
        "--batch", metavar="BATCH", help="Only this batch, FOLDER/0001; may be given several times."
    ),
]


def plan(
    recipe: RecipeName, folder: Folder = None, project: Project = None, json: Json = False
) -> None:
    """Show what a run would do, how long it would take and what it would cost; nothing is run."""
    from .planning import show_plan

    show_plan(project, recipe, folder=folder, as_json=json)


def run(
    recipe: RecipeName,
    folder: Folder = None,
    step: Steps = None,
    batch: Batches = None,
    no_discover: Annotated[
        bool, typer.Option("--no-discover", help="Do not look for new pages first.")
    ] = False,
    now: Annotated[
        bool,
        typer.Option("--now", help="Ask providers by plain calls, at the full price: you wait."),
    ] = False,
    pages_may_leave: MayLeave = False,
    no_dagster: NoDagster = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not show the sheet and ask first.")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """Run a recipe here, in the foreground. Ctrl-C stops it, and what is done is kept."""
    from .running import Wanted, run_recipe

    wanted = Wanted(recipe, folder, tuple(step or ()), tuple(batch or ()), now, pages_may_leave)
    run_recipe(
        project,
        wanted,
        discover=not no_discover,
        dagster=not no_dagster,
        as_json=json,
        yes=yes,
    )


def backfill(
    recipe: RecipeName,
    folder: Folder = None,
    step: Steps = None,
    missing_only: Annotated[
        bool, typer.Option("--missing-only", help="Only what is not materialized yet.")
    ] = False,
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Where the Dagster UI answers.")
    ] = "http://localhost:3000",
    pages_may_leave: MayLeave = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Launch it and do not follow it.")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """Launch a backfill in a running Dagster, as its UI would, and follow it to its end."""
    from .backfilling import Target, run_backfill

    target = Target(recipe, folder, tuple(step or ()), missing_only, pages_may_leave)
    run_backfill(project, target, url=url, wait=not no_wait, as_json=json)


def dev(
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="The UI's port.")
    ] = 3000,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    project: Project = None,
) -> None:
    """Open the Dagster UI over the project; Ctrl-C ends it."""
    from .serving import serve

    serve(project, host=host, port=port)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (plan, run, backfill, dev):
        app.command()(command)
