"""`recipes rebuild-events`."""

from __future__ import annotations

import typer

from .options import Json, MaybeRecipe, Project

__all__ = ["register"]


def rebuild_events(recipe: MaybeRecipe = None, project: Project = None, json: Json = False) -> None:
    """Tell the Dagster instance again what the library holds, after its storage was lost."""
    from .rebuilding import rebuild

    rebuild(project, recipe, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("rebuild-events")(rebuild_events)
