"""What lies of tasks in folders at places elsewhere, and goes when nothing needs it any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

__all__ = ["FarFolders", "Over"]


@dataclass(frozen=True)
class Over:
    """A task that is over. `group` is what was to be remembered of it; see `Package`."""

    name: str
    group: Mapping[str, Any]


@runtime_checkable
class FarFolders(Protocol):
    """A place where each task has a folder, before it is sent and until it is removed."""

    def clear(self, tasks: Sequence[Over]) -> Iterator[str]:
        """Removes what lies of the tasks, here and there; gives each name once nothing does.

        What other tasks of the same batch need stays. A task of which nothing is there is one of
        which nothing is left. Raises `ProviderError` where the place cannot be asked now.
        """
        ...
