"""The work of `recipes init` and `check`."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from ..new_project import init_project
from ..pages.naming import shown
from ..project import load_project
from ..stages import stages_of
from ..yaml_files import ConfigErrors
from .exits import WRONG
from .output import Output, count

__all__ = ["check_project", "make_project"]


def make_project(folder: Path, *, as_json: bool) -> None:
    """Writes a new project. Raises `ConfigError` when there is one already."""
    output = Output(as_json=as_json)
    files = init_project(folder)
    for file in files:
        output.line(f"wrote {shown(str(file))}")
    output.line()
    output.line(f"Put page images into {shown(str(folder / 'pages'))}, then run:")
    output.line(f"  recipes run letters --project {shown(shlex.quote(str(folder)))}")
    output.document({"folder": str(folder.resolve()), "files": [str(file) for file in files]})


def check_project(folder: Path | None, *, as_json: bool) -> None:
    """Says what the project has in it, or every mistake of its files and exit code 2."""
    output = Output(as_json=as_json)
    try:
        project = load_project(folder)
    except ConfigErrors as error:
        for mistake in error.mistakes:
            output.note(shown(str(mistake)))
        mistakes = [
            {"file": each.file, "line": each.line, "message": each.message}
            for each in error.mistakes
        ]
        output.document({"ok": False, "mistakes": mistakes})
        raise typer.Exit(WRONG) from error
    recipes = {
        recipe.name: {
            "source": recipe.source,
            "when": recipe.when,
            "stages": {
                stage.name: [step.name for step in stage.steps] for stage in stages_of(recipe)
            },
        }
        for recipe in project.recipes.values()
    }
    output.line(f"Project {shown(project.name)} in {shown(str(project.folder))} is right.")
    for name, source in project.sources.items():
        output.line(f"source {name}: {shown(source.root)}")
    for recipe in project.recipes.values():
        steps = ", ".join(step.name for step in recipe.steps)
        output.line(
            f"recipe {recipe.name} over {recipe.source}, {recipe.when}: "
            f"{count(len(recipe.steps), 'step')} ({steps})"
        )
    output.document(
        {
            "ok": True,
            "mistakes": [],
            "project": project.name,
            "folder": str(project.folder),
            "sources": {name: source.root for name, source in project.sources.items()},
            "recipes": recipes,
        }
    )
