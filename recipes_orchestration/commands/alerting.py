"""Alerts from the command line: while a run goes on, and `recipes alerts`."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import typer

from ..channels.channel import SECONDS, Notice
from ..engine.alerts import (
    configured_channels,
    look_for_alerts,
    tell_alerts,
    tell_within,
)
from ..engine.engine import Engine, open_engine
from ..errors import RecipesError
from ..ledger.alerts import Alert
from ..pages.naming import shown
from ..project import Project
from .exits import NOT_COMPLETE
from .opening import opened
from .output import Output

__all__ = ["alerting", "show_alerts"]

LOOK_EVERY = 60.0


@contextmanager
def alerting(project: Project) -> Generator[None]:
    """Tells the project's channels while the block lasts, and once more at its end.

    In a thread and with a ledger of its own, so that no channel holds the run up; its end is
    waited for no longer than a channel may take. Without channels nothing is done.
    """
    if not project.alerts.any:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(project, over), daemon=True, name="recipes-alerts"
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(2 * SECONDS)


def _watch(project: Project, over: threading.Event) -> None:
    # What goes wrong here must not be the run's trouble: the ledger still has what was not told.
    try:
        with open_engine(project) as engine:
            ended = False
            while not ended:
                ended = over.wait(LOOK_EVERY)
                _look_and_tell(engine)
    except RecipesError:
        return


def _look_and_tell(engine: Engine) -> list[str]:
    look_for_alerts(engine)
    return tell_alerts(engine, configured_channels(engine), 1.5 * SECONDS)


def show_alerts(project: Path | None, *, test: bool, as_json: bool) -> None:
    """What a person should know now; with `test`, tells every channel that this is a test."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        if test:
            _test(engine, output)
            return
        look_for_alerts(engine)
        alerts = engine.ledger.alerts.open()
        channels = [channel.name for channel in configured_channels(engine)]
    if alerts:
        columns = ["since", "kind", ""]
        output.table(columns, [_row(each) for each in alerts], left=range(len(columns)))
    else:
        output.line("There is nothing to tell.")
    output.line(f"Told: {', '.join(['the Dagster log', *channels])}.")
    output.document({"alerts": [_document(each) for each in alerts], "channels": channels})


def _row(alert: Alert) -> list[str]:
    return [f"{alert.first_at:%Y-%m-%d %H:%M}", alert.kind.value, shown(alert.words)]


def _document(alert: Alert) -> dict[str, object]:
    return {
        "cause": alert.cause,
        "kind": alert.kind.value,
        "words": alert.words,
        "since": alert.first_at,
        "told_at": alert.told_at,
    }


def _test(engine: Engine, output: Output) -> None:
    notice = Notice(
        project=engine.project.name,
        kind="test",
        cause="test",
        words="recipes alerts --test was run: alerts arrive here.",
        first_at=datetime.now(UTC),
    )
    channels = configured_channels(engine)
    outcomes = {channel.name: tell_within(channel, notice) for channel in channels}
    for name, trouble in outcomes.items():
        output.line(f"{name}: {'told' if trouble is None else shown(trouble)}")
    if not outcomes:
        output.line("Nobody is named under alerts in project.yaml: see docs/alerts.md")
    output.document({"channels": outcomes})
    if any(trouble is not None for trouble in outcomes.values()):
        raise typer.Exit(NOT_COMPLETE)
