"""Opening the project that a command is about, and finding in it what the command names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.engine import Engine, open_engine
from ..errors import NotFound
from ..ledger.pages import BatchRow
from ..pages.naming import shown
from ..project import Project, load_project
from ..recipe import Recipe

if TYPE_CHECKING:
    from ..orchestration.instance import Instance

__all__ = [
    "batches_in",
    "dagster_instance",
    "did_you_mean",
    "load_project",
    "opened",
    "recipes_named",
    "steps_named",
]


@contextmanager
def opened(project: Path | None, *, pages_may_leave: bool = False) -> Generator[Engine]:
    """The engine of the project in that folder. `pages_may_leave`: a person says so."""
    with open_engine(load_project(project), pages_may_leave=pages_may_leave) as engine:
        yield engine


@contextmanager
def dagster_instance(project: Project, *, wanted: bool = True) -> Generator[Instance | None]:
    """The project's Dagster instance, or None when it is not wanted: then Dagster is not imported.

    Raises `DagsterError` when its storage cannot be opened.
    """
    if not wanted:
        yield None
        return
    from ..orchestration.instance import open_instance

    with open_instance(project.folder) as instance:
        yield instance


def recipes_named(project: Project, name: str | None) -> list[Recipe]:
    """That recipe, or all of them when none is named. Raises `NotFound`."""
    return list(project.recipes.values()) if name is None else [project.recipe(name)]


def steps_named(recipe: Recipe, names: Sequence[str]) -> list[str]:
    """The named steps in the recipe's order, all when none is named. Raises `NotFound`."""
    known = [step.name for step in recipe.steps]
    for name in names:
        if name not in known:
            raise NotFound(
                f"Recipe {recipe.name} has no step {shown(name)}{did_you_mean(name, known)} "
                f"Its steps are {', '.join(known)}."
            )
    return [name for name in known if not names or name in names]


def batches_in(engine: Engine, source: str, folder: str | None) -> list[BatchRow]:
    """The batches of the folder and those below it. Raises `NotFound` when there is no such one."""
    batches = engine.ledger.pages.batches(source, folder)
    if batches or folder is None:
        return batches
    folders = engine.ledger.pages.folders(source)
    known = f"It has {', '.join(map(shown, folders[:10]))}{' ...' if len(folders) > 10 else ''}."
    raise NotFound(
        f"Source {source} has no pages in a folder {shown(folder)}"
        f"{did_you_mean(folder, folders)} "
        + (known if folders else "Find its pages first: recipes discover")
    )


def did_you_mean(name: str, known: Collection[str]) -> str:
    """`. Did you mean "this"?` or a full stop."""
    near = difflib.get_close_matches(name, known, n=1)
    return f'. Did you mean "{shown(near[0])}"?' if near else "."
