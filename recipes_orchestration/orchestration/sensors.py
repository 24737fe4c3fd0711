"""Discovery in the background: a sensor per source, time-budgeted, going on from a cursor."""

from __future__ import annotations

import dagster as dg

from ..engine.discover import Discovered, discover
from ..engine.engine import Engine, open_engine
from ..errors import RecipesError
from ..pages.naming import shown
from ..project import Project
from .pages_events import batch_materializations, batches_of

__all__ = ["discovery_sensor"]

# Dagster ends a sensor's tick at 60 s; the budget leaves room for writing the events.
BUDGET_SECONDS = 30.0
EVERY_SECONDS = 60


def discovery_sensor(project: Project, source: str) -> dg.SensorDefinition:
    """Looks for new, changed and vanished pages of the source and tells Dagster of them."""

    @dg.sensor(
        name=f"discover_{source}",
        description=f"Finds new, changed and vanished pages of source {source}.",
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def tick(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with open_engine(project) as engine:
            return _tick(context, engine, source)

    return tick


def _tick(context: dg.SensorEvaluationContext, engine: Engine, source: str) -> dg.SensorResult:
    try:
        found = discover(
            engine.source(source),
            engine.ledger,
            batch_size=engine.project.source(source).batch_size,
            after=context.cursor or None,
            budget_seconds=BUDGET_SECONDS,
        )
    except RecipesError as error:
        return dg.SensorResult(skip_reason=str(error), cursor=context.cursor)
    known = set(context.instance.get_dynamic_partitions(source))
    # Batches that a discovery recorded and was killed before telling are told now.
    untold = [row.key for row in engine.ledger.pages.batches(source) if row.key not in known]
    batches = sorted({*found.batches, *untold})
    return dg.SensorResult(
        cursor=found.cursor or "",
        dynamic_partitions_requests=[batches_of(source).build_add_request(sorted(untold))]
        if untold
        else [],
        asset_events=list(batch_materializations(engine, source, batches)),
        skip_reason=None if batches else _told(found),
    )


def _told(found: Discovered) -> str:
    """What the tick saw when there is nothing to tell Dagster."""
    words = f"{found.files} files in {found.folders} folders of {found.source}: nothing new"
    for folder, problem in found.unlisted[:3]:
        words += f"; {shown(folder)}: {problem}"
    return words
