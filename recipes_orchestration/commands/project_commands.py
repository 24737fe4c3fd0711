"""`recipes init`, `check` and `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Project

__all__ = ["register"]


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; it is made.")],
    json: Json = False,
) -> None:
    """Write a new project folder that explains itself."""
    from .projects import make_project

    make_project(folder, as_json=json)


def check(project: Project = None, json: Json = False) -> None:
    """Check project.yaml and recipes/*.yaml, and say what is wrong where."""
    from .projects import check_project

    check_project(project, as_json=json)


def doctor(project: Project = None, json: Json = False) -> None:
    """Look whether everything that a run needs is there and works; a sentence each."""
    from .examining import examine

    examine(project, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(init)
    app.command()(check)
    app.command()(doctor)
