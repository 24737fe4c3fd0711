"""Folders of tasks here: what was fetched of one, and what can go when one is done with."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ...runner.task_folder import CODE, PAGES
from ..processes import process_lives, this_process
from .page_files import PARTS, folder_error, sweep_parts

__all__ = ["own_folder", "remove_task"]

_FETCHED = ".fetched~"


@contextmanager
def own_folder(root: Path) -> Generator[Path]:
    """A folder in `root` for what this process fetches, removed at the end.

    Two processes may land one task at the same time, so that neither may write or remove what the
    other one reads. Folders of processes that are dead go first. Raises `PlaceError` when the disk
    does not let it.
    """
    own = root / f"{_FETCHED}{this_process()}~{uuid4().hex[:8]}"
    try:
        own.mkdir(parents=True, mode=0o700)
        for each in root.glob(f"{_FETCHED}*"):
            if process_lives(each.name.removeprefix(_FETCHED).partition("~")[0]) is False:
                shutil.rmtree(each, ignore_errors=True)
    except OSError as error:
        raise folder_error(root, error) from error
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


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
