"""`recipes pause`, `resume`, `stop`, `now`, `retry` and `release`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Folder, Json, Project, RecipeName

__all__ = ["register"]

Batch = Annotated[
    str | None, typer.Option("--batch", metavar="BATCH", help="Only this batch, FOLDER/0001.")
]
Step = Annotated[str | None, typer.Option("--step", metavar="STEP", help="Only this step.")]
Reason = Annotated[
    str, typer.Option("--reason", metavar="WORDS", help="Why; shown with what it holds back.")
]


def pause(
    recipe: RecipeName,
    folder: Folder = None,
    batch: Batch = None,
    step: Step = None,
    reason: Reason = "",
    project: Project = None,
    json: Json = False,
) -> None:
    """Send nothing more of a recipe or a part of it; what is out goes on and lands."""
    from .controlling import Part, pause_part

    pause_part(project, Part(recipe, folder, batch, step), reason, as_json=json)


def resume(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A recipe, or a place such as anthropic.")
    ],
    folder: Folder = None,
    batch: Batch = None,
    step: Step = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Let a paused or stopped recipe, or a paused place, go on."""
    from .controlling import Part, resume_part

    resume_part(project, Part(name, folder, batch, step), as_json=json)


def stop(
    recipe: RecipeName,
    folder: Folder = None,
    batch: Batch = None,
    step: Step = None,
    reason: Reason = "",
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Ask the places to end it and do not follow them.")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """End what is out of a recipe or a part of it; what was answered lands, nothing is sent."""
    from .controlling import Part, stop_part

    part = Part(recipe, folder, batch, step)
    stop_part(project, part, reason, wait=not no_wait, as_json=json)


def now(
    recipe: RecipeName,
    folder: Folder = None,
    batch: Batch = None,
    step: Step = None,
    reason: Reason = "",
    project: Project = None,
    json: Json = False,
) -> None:
    """Wait for no batch: what is open at a provider ends, and the rest goes by plain calls."""
    from .controlling import Part, hurry_part

    hurry_part(project, Part(recipe, folder, batch, step), reason, as_json=json)


def retry(
    recipe: RecipeName,
    step: Annotated[
        str | None, typer.Option("--step", metavar="STEP", help="Only what this step holds.")
    ] = None,
    folder: Folder = None,
    batch: Batch = None,
    page: Annotated[
        str | None, typer.Option("--page", metavar="PAGE", help="Only this page.")
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Let held pages be tried again by the next run."""
    from .holding import retry_held

    retry_held(project, recipe, step=step, folder=folder, batch=batch, page=page, as_json=json)


def release(
    page: Annotated[str, typer.Argument(metavar="PAGE", help="The page's path below the source.")],
    reason: Annotated[
        str, typer.Option("--reason", metavar="WORDS", help="Why; kept with the page.")
    ],
    value: Annotated[
        str | None,
        typer.Option(
            "--value",
            metavar="JSON",
            help="The result, given by hand; words that are no JSON become a text.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", metavar="RECIPE", help="Of which recipe, when several hold it."),
    ] = None,
    step: Step = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Set a held page aside for good, or give it a value by hand."""
    from .releasing import release_page

    release_page(project, page, recipe, step, value=value, reason=reason, as_json=json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (pause, resume, stop, now, retry, release):
        app.command()(command)
