"""Folders of tasks that are over go from the store, and those that were packed here with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import ProviderError, Unreachable
from ..task_folders.batch_folder import remove_task
from .orders import TaskPlace
from .store import Store

__all__ = ["cleared"]


def cleared(store: Store, root: Path, tasks: Mapping[str, TaskPlace]) -> Iterator[str]:
    """Gives each task's name once nothing is left of it; by one list of each batch folder.

    A batch folder that cannot be removed keeps none of the others. Raises as `FarFolders.clear`.
    """
    batches: dict[str, dict[str, str]] = {}
    for name, at in tasks.items():
        batches.setdefault(at.batch, {})[at.task] = name
    failed: ProviderError | None = None
    for batch, names in batches.items():
        for task in names:
            remove_task(root / batch, task)
        try:
            store.remove(batch, *names)
        except Unreachable:
            raise
        except ProviderError as error:
            failed = error
        else:
            yield from names.values()
    if failed is not None:
        raise failed
