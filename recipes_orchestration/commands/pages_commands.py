"""`recipes discover`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json, NoDagster, Project

__all__ = ["register"]

Source = Annotated[
    str | None, typer.Argument(metavar="[SOURCE]", help="One source; all when none is named.")
]


def discover(
    source: Source = None,
    no_dagster: NoDagster = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """Find new, changed and vanished pages, and cut new ones into batches."""
    from .discovering import discover_now

    discover_now(project, source, dagster=not no_dagster, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(discover)
