"""The Dagster instance for commands, its errors told in a sentence. Imports Dagster."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dagster as dg
from dagster_shared.error import DagsterError as AnyDagsterError
from sqlalchemy.exc import SQLAlchemyError

from ..errors import DagsterError
from ..orchestration.instance import dagster_home, open_instance

__all__ = ["opened_instance", "told_in_a_sentence"]


@contextmanager
def opened_instance(project_folder: Path) -> Generator[dg.DagsterInstance]:
    """The instance of the project; made when there is none. Raises `DagsterError`."""
    with ExitStack() as stack:
        with told_in_a_sentence(
            f"The Dagster instance in {dagster_home(project_folder)} cannot be opened",
            "Set DAGSTER_HOME to another folder, or leave Dagster out with --no-dagster.",
        ):
            instance = stack.enter_context(open_instance(project_folder))
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
