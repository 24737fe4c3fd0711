"""`recipes alerts`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json, Project

__all__ = ["register"]


def alerts(
    test: Annotated[
        bool, typer.Option("--test", help="Tell every channel that this is a test.")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """List what a person should know now, and who is told of it."""
    from .alerting import show_alerts

    show_alerts(project, test=test, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(alerts)
