"""Tells the Dagster instance of the batches that a run has brought to their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..engine.engine import Engine
from ..engine.look import BatchView
from ..recipe import Recipe

if TYPE_CHECKING:
    from ..orchestration.instance import Instance

__all__ = ["Teller"]


class Teller:
    """Materializes what is complete. `told` counts the partitions that were new to Dagster.

    Without an instance it does nothing.
    """

    def __init__(self, engine: Engine, instance: Instance | None, recipe: Recipe) -> None:
        self._engine = engine
        self._instance = instance
        self.told = 0
        self._known: dict[str, set[str]] = {}
        if instance is not None:
            from ..orchestration.events import step_key

            # Asked once: rows of a batch are only read when there is something to tell.
            self._known = {
                step.name: instance.get_materialized_partitions(step_key(recipe.name, step.name))
                for step in recipe.steps
            }

    def tell(self, view: BatchView, steps: Sequence[str], *, landed: bool) -> None:
        """Tells of the steps in which something landed just now or which Dagster does not know.

        Raises `DagsterError` when Dagster's storage does not take it.
        """
        if self._instance is None:
            return
        from ..orchestration.instance import told_in_a_sentence
        from ..orchestration.recording import record_view

        news = [step for step in steps if landed or view.batch not in self._known[step]]
        with told_in_a_sentence(
            f"Dagster could not be told of batch {view.batch}, which has landed",
            "Tell it later with: recipes rebuild-events",
        ):
            self.told += record_view(self._engine, self._instance, view, news)
