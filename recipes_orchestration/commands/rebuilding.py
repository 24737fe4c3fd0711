"""The work of `recipes rebuild-events`."""

from __future__ import annotations

from pathlib import Path

from ..engine.engine import Engine
from ..pages.naming import shown
from ..recipe import Recipe
from .opening import opened, recipes_named
from .output import Output, count

__all__ = ["rebuild"]


def rebuild(project: Path | None, recipe: str | None, *, as_json: bool) -> None:
    """Materializes in Dagster what the library holds and Dagster does not know."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        recipes = recipes_named(engine.project, recipe)
        rebuilt = _rebuild(engine, recipes, output)
    output.line(f"{count(rebuilt, 'materialization')} brought back.")
    output.document({"recipes": [each.name for each in recipes], "rebuilt": rebuilt})


def _rebuild(engine: Engine, recipes: list[Recipe], output: Output) -> int:
    from ..orchestration.instance import open_instance, told_in_a_sentence
    from ..orchestration.recording import rebuild_events

    total = sum(len(engine.ledger.pages.batches(recipe.source)) for recipe in recipes)
    with open_instance(engine.project.folder) as instance, output.progress() as progress:
        bar = progress.add_task("rebuild", total=total, unit="batches")

        def on_batch(recipe: str, batch: str) -> None:
            progress.update(bar, advance=1, description=f"{recipe} {shown(batch)}")

        with told_in_a_sentence(
            "Dagster did not take what it was told",
            "Run the command again: what it took is not told twice.",
        ):
            return rebuild_events(engine, instance, recipes, on_batch=on_batch)
