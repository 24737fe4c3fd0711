"""Hands a step's landed results to anyone's downstream asset as a pandas data frame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import dagster as dg

from ..engine.look import judge_batch
from ..ledger.database import open_ledger
from ..library.library import Library
from ..project import Project

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PageResultsIOManager"]


class PageResultsIOManager(dg.IOManager):
    """Loads the results of `[recipe, step]` for one partition or many.

    The frame has one row a page with the columns `page_id, key, value, model, tokens_in,
    tokens_out, cost_usd, seconds, task, landed_at` and, for telling partitions apart, `batch`;
    `value` is the decoded JSON. Rows of pages that have since changed or gone are left out.
    Steps write to the library themselves, so an output is never handled here.
    """

    def __init__(self, project: Project) -> None:
        self._project = project

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:  # noqa: ARG002  Dagster's own signature
        """Refuses: results land in the library through the engine only."""
        raise dg.DagsterInvariantViolationError(
            f"{context.asset_key.to_user_string()} cannot be written by the page results IO "
            "manager, which only reads; give your asset another io_manager_key."
        )

    def load_input(self, context: dg.InputContext) -> pd.DataFrame:
        """The landed rows of the upstream partitions as one frame, in page order."""
        import pandas as pd  # takes a second, which every run that needs no frame is spared

        recipe_name, step = context.asset_key.path[-2:]
        recipe = self._project.recipe(recipe_name)
        library = Library(self._project.library, self._project.library_storage_options)
        ledger = open_ledger(self._project.ledger_url)
        try:
            frames = []
            for batch in context.asset_partition_keys:
                view = judge_batch(
                    recipe,
                    batch,
                    pages=ledger.pages.in_batch(recipe.source, batch),
                    landed={},
                    attempts={},
                    steps=[step],
                )
                current = view.steps[step].keys
                frame = library.table(recipe_name, step, batch).to_pandas()
                pairs = zip(frame["page_id"], frame["key"], strict=True)
                still = [current.get(page_id) == key for page_id, key in pairs]
                # An empty list would be taken for a choice of no columns.
                frame = frame[pd.Series(still, index=frame.index, dtype=bool)]
                order = {page_id: at for at, page_id in enumerate(current)}
                frames.append(
                    frame.assign(batch=batch).sort_values("page_id", key=lambda c: c.map(order))
                )
        finally:
            ledger.close()
        return _joined(frames)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    if not frames:
        return pd.DataFrame(columns=["page_id", "key", "value", "batch"])
    joined = pd.concat(frames, ignore_index=True)
    values: list[Any] = [json.loads(value) for value in joined["value"]]
    return joined.assign(value=pd.Series(values, index=joined.index, dtype=object))
