"""The work of `recipes tasks` and `recipes resume`: what is open where, and what is paused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..engine.standing import standings
from ..errors import NotFound
from ..ledger.pauses import Pause
from ..ledger.tasks import TaskHead
from ..pages.naming import shown
from ..places.place import Standing
from ..project_mistakes import choose
from .opening import opened
from .output import Output, duration

__all__ = ["resume_place", "show_tasks"]


def show_tasks(project: Path | None, recipe: str | None, *, as_json: bool) -> None:
    """Each open task with its id at its place and how that says it stands."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        wanted = None if recipe is None else engine.project.recipe(recipe).name
        heads = [head for head in engine.ledger.tasks.heads() if wanted in (None, head.recipe)]
        stand = standings(engine, heads)
        pauses = engine.ledger.pauses.all()
    rows = [_row(head, stand[head.id]) for head in heads]
    if rows:
        columns = ["batch", "stage", "place", "id there", "since", "state", ""]
        output.table(columns, [list(row.values()) for row in rows], left=range(len(columns)))
    else:
        output.line("Nothing is open at any place.")
    for pause in pauses:
        output.line(_pause_words(pause))
    paused = [
        {"place": pause.place, "words": pause.words, "since": pause.since, "until": pause.until}
        for pause in pauses
    ]
    output.document(
        {"tasks": [_document(head, stand[head.id]) for head in heads], "paused": paused}
    )


def resume_place(project: Path | None, place: str, *, as_json: bool) -> None:
    """Ends the pause of a place; says so when it was not paused."""
    output = Output(as_json=as_json)
    with opened(project) as engine:
        if place not in engine.project.places:
            raise NotFound(f'There is no place "{place}"{choose(place, engine.project.places)}')
        resumed = engine.ledger.pauses.resume(place)
    output.line(f"{place} takes work again." if resumed else f"{place} was not paused.")
    if resumed:
        output.line("What waits in Dagster's queue goes on by itself; or run: recipes run RECIPE")
    output.document({"place": place, "resumed": resumed})


def _row(head: TaskHead, standing: Standing) -> dict[str, str]:
    since = head.sent_at or head.created_at
    return {
        "batch": shown(head.batch),
        "stage": f"{head.recipe}/{head.stage}",
        "place": head.place,
        "id": head.remote_id or "not known yet",
        "since": duration((datetime.now(UTC) - since).total_seconds()),
        "state": _state(head, standing),
        "words": shown(standing.words),
    }


def _state(head: TaskHead, standing: Standing) -> str:
    if head.held:
        return "held"
    return "stopping" if head.stopped and standing.state == "running" else standing.state.value


def _document(head: TaskHead, standing: Standing) -> dict[str, Any]:
    return {
        "name": head.name,
        "recipe": head.recipe,
        "stage": head.stage,
        "batch": head.batch,
        "place": head.place,
        "id": head.remote_id,
        "created_at": head.created_at,
        "sent_at": head.sent_at,
        "state": _state(head, standing),
        "words": standing.words,
    }


def _pause_words(pause: Pause) -> str:
    ends = (
        f"until {pause.until:%Y-%m-%d %H:%M} UTC"
        if pause.until is not None
        else f"until you run: recipes resume {pause.place}"
    )
    return f"{pause.place} is paused {ends}: {pause.words}"
