"""The work of `recipes status`."""

from __future__ import annotations

from pathlib import Path

from ..engine.cancelled import cancelled_words
from ..engine.engine import Engine
from ..engine.gates import halt_words
from ..engine.status import status_of
from ..engine.stopped import stop_words
from ..ledger.controls import Control, ControlKind
from ..recipe import Recipe
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
            controls = _controls(engine, each, folder)
            for words in dict.fromkeys(words for _, words in controls):
                output.line(words)
            if folders or controls:
                output.line()
            totals = total_of(folders)
            documents.append(
                {
                    "recipe": each.name,
                    "source": each.source,
                    "controls": [
                        {
                            "kind": control.kind,
                            "folder": control.scope.folder or None,
                            "batch": control.scope.batch or None,
                            "step": control.scope.step or None,
                            "since": control.since,
                            "by": control.by,
                            "reason": control.words,
                            "words": words,
                        }
                        for control, words in controls
                    ],
                    "folders": folders_document(folders),
                    "totals": {name: step_document(total) for name, total in totals.items()},
                }
            )
    output.document({"recipes": documents})


def _controls(engine: Engine, recipe: Recipe, folder: str | None) -> list[tuple[Control, str]]:
    """What a person decided, each with its words; batches that were cancelled by their folder."""
    controls = engine.ledger.controls.all(recipe.name)
    named = {batch.key for batch in batches_in(engine, recipe.source, folder)}
    cancelled = [
        each for each in controls if each.kind is ControlKind.CANCEL and each.scope.batch in named
    ]
    return [
        (control, _control_words(engine, control))
        for control in controls
        if control.kind not in (ControlKind.CANCEL, ControlKind.NOW)
    ] + [
        (control, words)
        for here, words in cancelled_words(engine, recipe, cancelled)
        for control in here
    ]


def _control_words(engine: Engine, control: Control) -> str:
    """What holds it back, and how far a stop came."""
    words = halt_words(control)
    if control.kind is ControlKind.STOP:
        return f"{stop_words(engine, control.scope)}. {words}"
    return words
