"""The values that a page needs, read when they are first asked for: most answers need none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["LaterNeeds"]


class LaterNeeds(Mapping[str, Any]):
    """The needs by step of the page `page_id`, which changes from answer to answer.

    `load` gives them for a page.
    """

    __slots__ = ("_load", "page_id")

    def __init__(self, load: Callable[[str], Mapping[str, Any]]) -> None:
        self._load = load
        self.page_id = ""

    def __getitem__(self, step: str) -> Any:
        return self._load(self.page_id)[step]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load(self.page_id))

    def __len__(self) -> int:
        return len(self._load(self.page_id))
