"""What of a batch folder here can go when one of its tasks is done with."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from ...runner.task_folder import CODE, PAGES
from .page_files import PARTS, sweep_parts

__all__ = ["remove_task"]


def remove_task(batch: Path, task: str) -> None:
    """Removes a task's folder, `<array>/<index>`, and the batch folder when it was its last one.

    A folder that cannot be removed stays; nothing depends on it.
    """
    folder = batch / task
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()
    with suppress(OSError):
        sweep_parts(batch)
    with suppress(OSError):
        if not any(map(_is_needed, batch.iterdir())):
            shutil.rmtree(batch, ignore_errors=True)


def _is_needed(entry: Path) -> bool:
    """Whether another task needs what is in the batch folder: it is one, or is being packed."""
    if entry.name == PARTS:
        # A process that packs has its own folder in there.
        return any(entry.iterdir())
    return entry.is_dir() and entry.name not in (PAGES, CODE)
