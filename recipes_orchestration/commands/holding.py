"""The work of `recipes held` and `retry`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..engine.by_hand import retry
from ..engine.controls import scope_of
from ..engine.engine import Engine
from ..engine.look import HeldPage, look
from ..engine.remedies import page_remedy, task_remedy
from ..errors import NotFound
from ..ledger.tasks import TaskHead
from ..pages.naming import name_from_bytes, shown
from ..recipe import Recipe
from ..runner.work import FailureKind
from .opening import batches_in, opened, recipes_named, steps_named
from .output import Output, count

__all__ = ["retry_held", "show_held"]


@dataclass(frozen=True)
class _Held:
    """A page that waits: `kind` is a word for the reason, `words` are what was said of it."""

    batch: str
    page_id: str
    step: str
    kind: str
    words: str
    since: datetime | None
    tries: int | None


def show_held(
    project: Path | None, recipe: str | None, *, folder: str | None, as_json: bool
) -> None:
    """Lists each held page and task with the reason, since when, and what a person can do.

    A page once for each step that holds it by itself.
    """
    output = Output(as_json=as_json)
    pages: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    with opened(project) as engine:
        heads = [head for head in engine.ledger.tasks.heads() if head.held]
        for each in recipes_named(engine.project, recipe):
            within = {batch.key for batch in batches_in(engine, each.source, folder)}
            held = list(_held_pages(engine, each, folder))
            waiting = [h for h in heads if h.recipe == each.name and h.batch in within]
            _show_pages(output, each, held)
            _show_tasks(output, each, waiting)
            pages += [_page_document(each, page) for page in held]
            tasks += [_task_document(head) for head in waiting]
    output.document({"held": pages, "tasks": tasks})


def _show_pages(output: Output, recipe: Recipe, held: Sequence[_Held]) -> None:
    if not held:
        output.line(f"{recipe.name}: no page is held")
        return
    output.line(f"{recipe.name}: {count(len(held), 'page')} held")
    rows = [
        (
            *(shown(page.page_id), page.step, page.kind, _told(page.since)),
            "" if page.tries is None else str(page.tries),
            shown(page.words),
        )
        for page in held
    ]
    output.table(["page", "step", "reason", "since", "tries", ""], rows, left=(0, 1, 2, 3, 5))
    for kind in dict.fromkeys(page.kind for page in held):
        output.line(f"{kind}: {page_remedy(kind, recipe.name, recipe.source)}")


def _show_tasks(output: Output, recipe: Recipe, held: Sequence[TaskHead]) -> None:
    if not held:
        return
    output.line(f"{recipe.name}: {count(len(held), 'task')} held")
    rows = [
        (
            *(shown(head.batch), head.stage, head.place, head.remote_id or "not known"),
            *(_told(head.held_at), shown(head.held or "")),
        )
        for head in held
    ]
    output.table(["batch", "stage", "place", "id there", "since", ""], rows, left=range(6))
    output.line(f"What you can do: {task_remedy(recipe.name)}")


def _told(since: datetime | None) -> str:
    return "" if since is None else f"{since:%Y-%m-%d %H:%M}"


def _page_document(recipe: Recipe, page: _Held) -> dict[str, Any]:
    return {
        "recipe": recipe.name,
        "step": page.step,
        "source": recipe.source,
        "batch": page.batch,
        "page_id": page.page_id,
        "kind": page.kind,
        "reason": page.words,
        "since": page.since,
        "tries": page.tries,
        "remedy": page_remedy(page.kind, recipe.name, recipe.source),
    }


def _task_document(head: TaskHead) -> dict[str, Any]:
    return {
        "recipe": head.recipe,
        "stage": head.stage,
        "batch": head.batch,
        "place": head.place,
        "id": head.remote_id,
        "reason": head.held,
        "since": head.held_at,
        "remedy": task_remedy(head.recipe),
    }


def _held_pages(engine: Engine, recipe: Recipe, folder: str | None) -> Iterator[_Held]:
    """Only batches in which the ledger knows of a hold or an unreadable page are looked at."""
    holding = {
        row.batch for row in engine.ledger.holds.held(recipe=recipe.name, source=recipe.source)
    }
    for batch in batches_in(engine, recipe.source, folder):
        if not batch.problems and batch.key not in holding:
            continue
        view = look(engine, recipe, batch.key)
        rows = engine.ledger.holds.attempts_of(recipe.name, recipe.source, batch.key)
        found: dict[tuple[str, str], HeldPage] = {}
        for step in view.steps.values():
            for page in step.waiting_for_a_person:
                found.setdefault((page.page_id, page.cause), page)
        changed = engine.ledger.pages.changed(recipe.source, {page for page, _ in found})
        for page in found.values():
            at = view.steps.get(page.cause)
            key = None if at is None else at.keys[page.page_id]
            row = None if key is None else rows.get((page.page_id, page.cause, key))
            if row is None:
                unreadable = FailureKind.UNREADABLE.value
                since = changed.get(page.page_id)
                yield _Held(batch.key, page.page_id, page.step, unreadable, page.words, since, None)
            else:
                told = (page.words, row.since, row.attempts)
                yield _Held(batch.key, page.page_id, page.step, row.reason, *told)


def retry_held(
    project: Path | None,
    recipe: str,
    *,
    step: str | None,
    folder: str | None,
    batch: str | None = None,
    page: str | None,
    as_json: bool,
) -> None:
    """Forgets the holds, so that the next run tries those pages again; says what that cannot mend.

    A page whose file cannot be read is looked at again only when the file is another.
    """
    output = Output(as_json=as_json)
    page_id = None if page is None else name_from_bytes(os.fsencode(page))
    with opened(project) as engine:
        chosen = engine.project.recipe(recipe)
        if step is not None:
            steps_named(chosen, [step])
        if page_id is not None and not engine.ledger.pages.find(page_id, chosen.source):
            raise NotFound(
                f"Source {chosen.source} has no page {shown(page_id)}; the held ones are shown by: "
                f"recipes held {chosen.name}"
            )
        if batch is not None:
            scope_of(engine, chosen.name, batch=batch)
        batches = batches_in(engine, chosen.source, folder)
        if batch is not None:
            batches = [each for each in batches if each.key == batch]
        whole = folder is None and batch is None
        done = retry(engine, chosen, batches, whole=whole, step=step, page_id=page_id)
    cleared, unreadable = done.cleared, done.unreadable
    output.line(
        f"{count(cleared, 'hold')} cleared. {'Now run' if cleared else 'Nothing to do'}"
        + (f": recipes run {chosen.name}" if cleared else ".")
    )
    if unreadable:
        output.line(
            f"{count(unreadable, 'page')} cannot be read: the file itself is at fault. Mend or "
            "replace it; a changed file is looked at again by the next run, or now: "
            f"recipes discover {chosen.source}"
        )
    output.document({"recipe": chosen.name, "cleared": cleared, "unreadable": unreadable})
