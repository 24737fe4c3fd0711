"""The work of `recipes discover`, and of the discovery at the start of a run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.discover import Discovered, discover
from ..engine.engine import Engine
from ..pages.naming import shown
from .opening import dagster_instance, opened
from .output import Output, count

if TYPE_CHECKING:
    from ..orchestration.instance import Instance

__all__ = ["discover_now", "discovered_document", "find_pages", "tell_pages"]


def discover_now(folder: Path | None, source: str | None, *, dagster: bool, as_json: bool) -> None:
    """Discovers one source or all to their ends and tells Dagster of the batches."""
    output = Output(as_json=as_json)
    with opened(folder) as engine:
        project = engine.project
        names = list(project.sources) if source is None else [source]
        for name in names:
            project.source(name)
        with dagster_instance(project, wanted=dagster) as instance:
            documents: list[dict[str, Any]] = []
            for name in names:
                found = find_pages(engine, name, output)
                told = tell_pages(engine, instance, name, found.batches)
                output.line(f"{name}: {_words(found)}")
                documents.append({**discovered_document(found), "told": told})
    output.document({"sources": documents})


def find_pages(engine: Engine, source: str, output: Output) -> Discovered:
    """Discovers the source to its end, with progress; warns of folders that cannot be listed."""
    started = last = time.monotonic()
    folders = files = 0
    with output.progress() as progress:
        bar = progress.add_task(f"discover {source}", total=None, unit="files")

        def on_folder(folder: str, number: int) -> None:
            nonlocal folders, files, last
            folders += 1
            files += number
            progress.update(bar, completed=files, description=f"discover {shown(folder)}")
            if not output.live and time.monotonic() - last > 10:
                last = time.monotonic()
                output.note(
                    f"discover {source}: {count(files, 'file')} in {count(folders, 'folder')} "
                    f"after {last - started:.0f} s"
                )

        found = discover(
            engine.source(source),
            engine.ledger,
            batch_size=engine.project.source(source).batch_size,
            on_folder=on_folder,
        )
    for folder, problem in found.unlisted:
        output.note(f"{shown(folder)}: {shown(problem)}")
    return found


def tell_pages(
    engine: Engine, instance: Instance | None, source: str, batches: Iterable[str]
) -> int:
    """Tells Dagster of these batches and of those it does not know yet; gives how many."""
    if instance is None:
        return 0
    from ..orchestration.instance import told_in_a_sentence
    from ..orchestration.recording import record_pages

    every = [row.key for row in engine.ledger.pages.batches(source)]
    changed = set(batches)
    with told_in_a_sentence(
        f"Dagster could not be told of the pages of {source}",
        "Run the command again, or leave Dagster out with --no-dagster.",
    ):
        known = set(instance.get_dynamic_partitions(source))
        news = [key for key in every if key in changed or key not in known]
        return record_pages(engine, instance, source, news)


def discovered_document(found: Discovered) -> dict[str, Any]:
    """What a discovery saw, for JSON."""
    return {
        "source": found.source,
        "folders": found.folders,
        "files": found.files,
        "ignored": found.ignored,
        "unchanged": found.unchanged,
        "new": found.new,
        "changed": found.changed,
        "gone": found.gone,
        "problems": found.problems,
        "unlisted": [{"folder": folder, "problem": words} for folder, words in found.unlisted],
        "batches": list(found.batches),
    }


def _words(found: Discovered) -> str:
    parts = [
        f"{count(found.files, 'file')} in {count(found.folders, 'folder')}",
        f"{count(found.new, 'new page')}, {found.changed:,} changed, {found.gone:,} gone",
    ]
    if found.problems:
        parts.append(f"{found.problems:,} cannot be read")
    if found.ignored:
        parts.append(f"{count(found.ignored, 'other file')} passed over")
    if found.batches:
        parts.append(f"{count(len(found.batches), 'batch', 'batches')} new or changed")
    return "; ".join(parts)
