"""Discovery in the background: a sensor per source, time-budgeted, going on from a cursor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from ..engine.discover import Discovered, discover
from ..engine.engine import Engine, open_engine
from ..errors import RecipesError
from ..pages.naming import shown
from ..project import Project
from .pages_events import batch_materializations, batches_of, changed_batches

__all__ = ["discovery_sensor"]

# Dagster ends a sensor's tick at 60 s; the budget leaves room for writing the events.
BUDGET_SECONDS = 30.0
EVERY_SECONDS = 60
# So many batches are told in a tick; the others in the next ones.
MOST_BATCHES = 1000
# The clocks of the machines that discover may differ by so much.
CLOCKS_APART = timedelta(minutes=5)


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
    cursor = _Cursor.of(context.cursor)
    started = datetime.now(UTC)
    try:
        found = discover(
            engine.source(source),
            engine.ledger,
            batch_size=engine.project.source(source).batch_size,
            after=cursor.after or None,
            budget_seconds=BUDGET_SECONDS,
        )
    except RecipesError as error:
        return dg.SensorResult(skip_reason=str(error), cursor=context.cursor)
    known = set(context.instance.get_dynamic_partitions(source))
    untold = [row.key for row in engine.ledger.pages.batches(source) if row.key not in known]
    touched = engine.ledger.pages.touched(source, cursor.since or started)
    changed = changed_batches(engine, context.instance, source, set(touched) & known)
    batches = sorted({*changed, *untold})
    told, left = batches[:MOST_BATCHES], batches[MOST_BATCHES:]
    new = sorted(set(untold) & set(told))
    since = cursor.since if left else started - CLOCKS_APART
    return dg.SensorResult(
        cursor=_Cursor(found.cursor or "", since).text(),
        dynamic_partitions_requests=[batches_of(source).build_add_request(new)] if new else [],
        asset_events=list(batch_materializations(engine, source, told)),
        skip_reason=None if told else _told(found),
    )


@dataclass(frozen=True)
class _Cursor:
    """Where discovery goes on, and since when what it found is still to be told.

    Dagster keeps the cursor together with a tick's events. What a killed tick wrote into the
    ledger, and what the command line found in between, is later than `since` and told next time.
    """

    after: str = ""
    since: datetime | None = None

    @classmethod
    def of(cls, text: str | None) -> _Cursor:
        if not text:
            return cls()
        values = json.loads(text)
        since = values["since"]
        return cls(values["after"], None if since is None else datetime.fromisoformat(since))

    def text(self) -> str:
        since = None if self.since is None else self.since.isoformat()
        return json.dumps({"after": self.after, "since": since})


def _told(found: Discovered) -> str:
    """What the tick saw when there is nothing to tell Dagster."""
    words = f"{found.files} files in {found.folders} folders of {found.source}: nothing new"
    for folder, problem in found.unlisted[:3]:
        words += f"; {shown(folder)}: {problem}"
    return words
