"""The Dagster instance that the command line writes to, the same one that the UI shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

__all__ = ["DEFAULT_YAML", "dagster_home", "open_instance"]

# The same file as the one at the top of a checkout, inside the package for an installed one.
DEFAULT_YAML = Path(__file__).with_name("dagster.yaml")


def dagster_home(project_folder: Path) -> Path:
    """DAGSTER_HOME, else the nearest `.dagster` at or above the project folder, else one in it."""
    if given := os.environ.get("DAGSTER_HOME"):
        return Path(given).expanduser().resolve()
    for folder in (project_folder, *project_folder.parents):
        if (folder / ".dagster").is_dir():
            return folder / ".dagster"
    return project_folder / ".dagster"


@contextmanager
def open_instance(project_folder: Path) -> Generator[dg.DagsterInstance]:
    """The instance in that home, made with this project's `dagster.yaml` when there is none."""
    home = dagster_home(project_folder)
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(DEFAULT_YAML, home / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance
