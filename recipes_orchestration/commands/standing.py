"""The work of `recipes status`."""

from __future__ import annotations

from pathlib import Path

from ..engine.status import status_of
from .counts import folders_document, show_folders, step_document, total_of
from .opening import batches_in, opened, recipes_named
from .output import Output

__all__ = ["show_status"]


def show_status(
    project: Path | None, recipe: str | None, *, folder: str | None, as_json: bool
) -> None:
    """Prints the folder x step table of one recipe or of all, read from library and ledger."""
    output = Output(as_json=as_json)
    documents = []
    with opened(project) as engine:
        for each in recipes_named(engine.project, recipe):
            if not batches_in(engine, each.source, folder):
                output.line(f"{each.name}: no pages are known yet; find them: recipes discover")
            folders = status_of(engine, each, folder)
            if folders:
                output.line(f"{each.name}: pages landed of those in source {each.source}")
                show_folders(output, folders, [step.name for step in each.steps])
                output.line()
            totals = total_of(folders)
            documents.append(
                {
                    "recipe": each.name,
                    "source": each.source,
                    "folders": folders_document(folders),
                    "totals": {name: step_document(total) for name, total in totals.items()},
                }
            )
    output.document({"recipes": documents})
