"""The Dagster instance for commands, its errors told in a sentence. Imports Dagster."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster_shared.error import DagsterError as AnyDagsterError
from sqlalchemy.exc import SQLAlchemyError

from ..errors import DagsterError
from ..orchestration.instance import dagster_home, open_instance

__all__ = ["opened_instance"]


@contextmanager
def opened_instance(project_folder: Path) -> Generator[dg.DagsterInstance]:
    """The instance of the project; made when there is none. Raises `DagsterError`."""
    opening = open_instance(project_folder)
    try:
        instance = opening.__enter__()
        instance.get_dynamic_partitions("recipes")  # opens the storage, which is done lazily
    except (AnyDagsterError, SQLAlchemyError, OSError, ValueError) as error:
        words = " ".join(str(error).split())[:300]
        raise DagsterError(
            f"The Dagster instance in {dagster_home(project_folder)} cannot be opened: {words}. "
            "Set DAGSTER_HOME to another folder, or leave Dagster out with --no-dagster."
        ) from error
    try:
        yield instance
    finally:
        opening.__exit__(None, None, None)
