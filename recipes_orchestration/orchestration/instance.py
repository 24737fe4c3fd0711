"""The Dagster instance that the command line writes to, the same one that the UI shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

import dagster as dg
from dagster_shared.error import DagsterError as AnyDagsterError
from sqlalchemy.exc import SQLAlchemyError

from ..errors import DagsterError

__all__ = ["DEFAULT_YAML", "Instance", "dagster_home", "open_instance", "told_in_a_sentence"]

Instance: TypeAlias = dg.DagsterInstance

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
def open_instance(project_folder: Path) -> Generator[Instance]:
    """The instance in that home, made with this project's `dagster.yaml` when there is none.

    Raises `DagsterError` when its storage cannot be opened.
    """
    home = dagster_home(project_folder)
    with ExitStack() as stack:
        with told_in_a_sentence(
            f"The Dagster instance in {home} cannot be opened",
            "Set DAGSTER_HOME to another folder, or leave Dagster out with --no-dagster.",
        ):
            home.mkdir(parents=True, exist_ok=True)
            if not (home / "dagster.yaml").exists():
                shutil.copyfile(DEFAULT_YAML, home / "dagster.yaml")
            instance = stack.enter_context(dg.DagsterInstance.from_config(str(home)))
            instance.get_dynamic_partitions("recipes")  # opens the storage, which is done lazily
        yield instance


@contextmanager
def told_in_a_sentence(what: str, advice: str) -> Generator[None]:
    """Whatever Dagster or its storage raises in the block becomes a `DagsterError`."""
    try:
        yield
    except (AnyDagsterError, SQLAlchemyError, OSError, ValueError) as error:
        words = " ".join(str(error).split())[:300].rstrip(".")
        raise DagsterError(f"{what}: {words}. {advice}") from error
