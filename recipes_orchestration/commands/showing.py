"""The work of `recipes show`: everything that is known about one page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ..engine.engine import Engine
from ..engine.look import look
from ..errors import NotFound
from ..ledger.pages import PageRow
from ..ledger.tasks import TaskRow
from ..pages.naming import folder_of, name_from_bytes, shown
from ..recipe import Recipe
from .opening import did_you_mean, opened
from .output import Output

__all__ = ["show_page"]

_PREVIEW = 120


def show_page(project: Path | None, page: str, *, as_json: bool) -> None:
    """Prints the page's file, batch, and its state at every step of every recipe over it."""
    output = Output(as_json=as_json)
    # A name that is no UTF-8 comes from the shell by its bytes.
    page_id = name_from_bytes(os.fsencode(page))
    with opened(project) as engine:
        found = engine.ledger.pages.find(page_id)
        if not found:
            raise NotFound(_nothing_of(engine, page_id))
        documents = [_document(engine, source, row) for source, row in found]
    for document in documents:
        _show(output, document)
    output.document({"page_id": page_id, "pages": documents})


def _document(engine: Engine, source: str, row: PageRow) -> dict[str, Any]:
    return {
        "source": source,
        "page_id": row.page_id,
        "file": row.file,
        "frame": row.frame,
        "folder": row.folder,
        "batch": row.batch,
        "position": row.position,
        "sha256": row.sha256,
        "size": row.size,
        "stamp": row.stamp,
        "problem": row.problem,
        "gone": row.gone,
        "recipes": [
            {"recipe": recipe.name, "steps": _steps(engine, recipe, row)}
            for recipe in engine.project.recipes.values()
            if recipe.source == source and row.batch is not None and not row.gone
        ],
        "tasks": [_task(task) for task in engine.ledger.tasks.of_page(row.page_id, source)],
    }


def _steps(engine: Engine, recipe: Recipe, row: PageRow) -> list[dict[str, Any]]:
    batch = row.batch or ""
    view = look(engine, recipe, batch)
    attempts = engine.ledger.holds.attempts_of(recipe.name, recipe.source, batch)
    documents: list[dict[str, Any]] = []
    for name, step in view.steps.items():
        key = step.keys[row.page_id]
        rows = engine.library.rows(recipe.name, name, batch, {(row.page_id, key)})
        failed = attempts.get((row.page_id, name, key))
        held = next((each.words for each in step.held if each.page_id == row.page_id), None)
        landed = rows[0] if rows else None
        documents.append(
            {
                "step": name,
                "key": key,
                "state": step.states[row.page_id].value,
                "held_because": held,
                "attempts_failed": failed.attempts if failed else 0,
                "last_failure": failed.words if failed else None,
                "value": landed.value if landed else None,
                "model": landed.model if landed else None,
                "seconds": landed.seconds if landed else None,
                "task": landed.task if landed else None,
                "landed_at": landed.landed_at if landed else None,
                "files": engine.library.uri(recipe.name, name, batch),
            }
        )
    return documents


def _task(task: TaskRow) -> dict[str, Any]:
    return {
        "name": task.name,
        "recipe": task.recipe,
        "stage": task.stage,
        "batch": task.batch,
        "place": task.place,
        "state": task.state.value,
        "attempt": task.attempt,
        "remote_id": task.remote_id,
        "message": task.message,
        "created_at": task.created_at,
        "landed_at": task.landed_at,
    }


def _show(output: Output, document: Mapping[str, Any]) -> None:
    output.line(f"{shown(document['page_id'])} in source {document['source']}")
    for name in ("file", "batch", "position", "sha256", "size", "stamp"):
        value = document[name]
        if value is not None:
            output.line(f"  {name:10} {shown(str(value))}")
    if document["problem"]:
        output.line(f"  {'problem':10} {shown(document['problem'])}")
    if document["gone"]:
        output.line("  gone: its file was not there at the last look; its results are kept")
    for recipe in document["recipes"]:
        output.line(f"recipe {recipe['recipe']}")
        for step in recipe["steps"]:
            _show_step(output, step)
    if document["tasks"]:
        output.line("tasks")
    for task in document["tasks"]:
        said = f": {shown(task['message'])}" if task["message"] else ""
        output.line(
            f"  {_moment(task['created_at'])} {task['name']} at {task['place']}, "
            f"attempt {task['attempt']}, {task['state']}{said}"
        )


def _show_step(output: Output, step: Mapping[str, Any]) -> None:
    output.line(f"  {step['step']}: {step['state']}, key {step['key']}")
    if step["held_because"]:
        output.line(f"    held because: {shown(step['held_because'])}")
    if step["attempts_failed"]:
        words = shown(step["last_failure"])
        output.line(f"    failed {step['attempts_failed']} times, at last: {words}")
    if step["landed_at"] is not None:
        output.line(
            f"    landed {_moment(step['landed_at'])} by {step['task']} in {step['seconds']:.3g} s"
        )
        output.line(f"    {_preview(step['value'])}")


def _preview(value: Any) -> str:
    text = value["text"] if isinstance(value, dict) and "text" in value else value
    words = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    words = " ".join(words.split())
    return shown(words[:_PREVIEW]) + (" ..." if len(words) > _PREVIEW else "")


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _nothing_of(engine: Engine, page_id: str) -> str:
    """Why there is no such page: a file of several pages, a near name, or not discovered yet."""
    near: list[str] = []
    for source in engine.project.sources:
        rows = engine.ledger.pages.rows_of_folder(source, folder_of(page_id))
        of_file = [row.page_id for row in rows if row.file == page_id]
        if of_file:
            return (
                f"{shown(page_id)} is a file of {len(of_file)} pages; name one of them, such as "
                f"{shown(of_file[0])}."
            )
        near += [row.page_id for row in rows]
    return (
        f"There is no page {shown(page_id)}{did_you_mean(page_id, near)} "
        "A page is named by its path below the source; new ones are found with: recipes discover"
    )
