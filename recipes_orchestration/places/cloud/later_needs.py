"""The values that a page needs, read when they are first asked for: most answers need none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["LaterNeeds"]


class LaterNeeds(Mapping[str, Any]):
    """A page's needs by step. `load` gives them."""

    __slots__ = ("_load",)

    def __init__(self, load: Callable[[], Mapping[str, Any]]) -> None:
        self._load = load

    def __getitem__(self, step: str) -> Any:
        return self._load()[step]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())
