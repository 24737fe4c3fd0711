"""Runs whose process has died: Dagster's default launcher leaves them started for ever."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
from dagster._core.events import DagsterEvent, DagsterEventType

from ..ledger.runs import RunRow
from ..places.processes import process_lives
from .adoption_desk import Desk
from .heartbeat import rests
from .run_tags import DEATHS

__all__ = ["SILENT_AFTER", "reconcile"]

# A heartbeat comes every 10 s, but a busy machine or a locked ledger may hold up a few.
SILENT_AFTER = 180.0
# A launched run says within a few seconds that it has started.
STARTS_WITHIN = 120.0
MOST_DEATHS = 3


def reconcile(desk: Desk) -> None:
    """Lets every dead run's work go on in a continuation, and ends the run.

    The continuation comes first: a backfill with no unfinished run would be closed as failed.
    """
    ours = [record for record in desk.active if desk.works.of(record.dagster_run)]
    beats = desk.engine.ledger.runs.of([record.dagster_run.run_id for record in ours])
    dead = [
        (record.dagster_run, words)
        for record in ours
        if (words := _why_dead(desk, record, beats.get(record.dagster_run.run_id))) is not None
    ]
    children = desk.children(run.run_id for run, _ in dead)
    for run, words in dead:
        child = children.get(run.run_id)
        if child is not None:
            _end(desk, run, f"{words} What it had begun goes on in run {child.run_id}.")
            continue
        deaths = int(run.tags.get(DEATHS, "0")) + 1
        if deaths >= MOST_DEATHS:
            desk.instance.report_run_failed(
                run, f"{words} So did {deaths - 1} runs before it: see what ends them."
            )
        elif not desk.go_on(run, {DEATHS: str(deaths)}):
            _end(desk, run, f"{words} It had done everything by then.")
        else:
            desk.notes.append(f"run {run.run_id} has died and goes on anew")


def _why_dead(desk: Desk, record: dg.RunRecord, beat: RunRow | None) -> str | None:
    run = record.dagster_run
    if run.status is dg.DagsterRunStatus.CANCELING:
        return None  # Dagster's own monitoring ends it
    if beat is None:
        quiet = _age(record.update_timestamp)
        if run.status is dg.DagsterRunStatus.STARTING:
            return "The run was launched but never started." if quiet > STARTS_WITHIN else None
        if quiet > SILENT_AFTER and not _works_on_another_asset(desk, run):
            return "The run started but never did anything."
        return None
    lives = process_lives(beat.owner.partition("/")[0])
    if lives is False:
        return "The run's process has died."
    age = _age(beat.heartbeat_at)
    if lives is None and age > SILENT_AFTER and not rests(beat.owner):
        return f"The run's process has said nothing for {age:.0f} s."
    return None


def _works_on_another_asset(desk: Desk, run: dg.DagsterRun) -> bool:
    """Whether the run began something that is no stage of ours and writes no heartbeat."""
    ours = {f"{recipe}__{stage}" for recipe, stage in desk.works.steps}
    begun = desk.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_START)
    return bool(begun) and begun[-1].step_key not in ours


def _end(desk: Desk, run: dg.DagsterRun, words: str) -> None:
    """Ends the run as a deferred one ends: green, with no outputs.

    A failed or cancelled one would turn its partition red in the backfill while its work goes on.
    """
    desk.instance.report_engine_event(words, run)
    event = DagsterEvent(
        event_type_value=DagsterEventType.RUN_SUCCESS.value, job_name=run.job_name, message=words
    )
    desk.instance.report_dagster_event(event, run_id=run.run_id)
    desk.notes.append(f"run {run.run_id} had died and was ended")


def _age(moment: datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (datetime.now(UTC) - moment).total_seconds()
