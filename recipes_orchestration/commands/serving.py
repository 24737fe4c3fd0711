"""The work of `recipes dev`: the Dagster UI over one project."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ..errors import DagsterError
from ..project import load_project
from .output import Output

__all__ = ["serve"]


def serve(project: Path | None, *, host: str, port: int) -> None:
    """Becomes `dagster dev`. The project is checked first, so that its mistakes are seen here."""
    folder = load_project(project).folder
    from ..orchestration.instance import DEFAULT_YAML, dagster_home

    home = dagster_home(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "dagster.yaml").exists():
            shutil.copyfile(DEFAULT_YAML, home / "dagster.yaml")
    except OSError as error:
        raise DagsterError(
            f"Dagster's folder {home} cannot be written: {error.strerror}. "
            "Set DAGSTER_HOME to a folder that you may write."
        ) from error
    Output(as_json=False).note(f"The Dagster UI opens at http://{host}:{port}; Ctrl-C ends it.")
    variables = {**os.environ, "RECIPES_PROJECT": str(folder), "DAGSTER_HOME": str(home)}
    command = [
        *(sys.executable, "-m", "dagster", "dev", "-m", "recipes_orchestration.definitions"),
        *("-h", host, "-p", str(port)),
    ]
    os.execve(sys.executable, command, variables)  # noqa: S606  no shell, and nothing from outside
