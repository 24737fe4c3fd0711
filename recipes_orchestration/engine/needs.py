"""The landed values that the pages of a task need, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..library.values import LandedValues
from ..recipe import Step, page_keys
from .engine import Engine

__all__ = ["Needs"]


@dataclass(frozen=True)
class Needs:
    """What pages need besides what the task computes itself.

    `chains` are the steps of each page, `shas` their hashes, `fingerprints` those of all steps.
    The values stay in the table that the library gave, so that memory is that of the table.
    """

    engine: Engine
    recipe: str
    batch: str
    steps: tuple[Step, ...]
    chains: Mapping[str, tuple[str, ...]]
    shas: Mapping[str, str]
    fingerprints: Mapping[str, str]

    def of(self, page_id: str) -> Mapping[str, Any]:
        """The values of one page by step."""
        return _PageNeeds(self, page_id)

    @cached_property
    def found(self) -> Mapping[str, LandedValues]:
        """The values that are wanted by page, by step in the order in which steps name them."""
        found: dict[str, LandedValues] = {}
        for need in dict.fromkeys(need for step in self.steps for need in step.needs):
            takers = {step.name for step in self.steps if need in step.needs}
            key_of = page_keys(self.fingerprints[need])
            keys = {
                page_id: key_of(self.shas[page_id])
                for page_id, chain in self.chains.items()
                if need not in chain and not takers.isdisjoint(chain)
            }
            if keys:
                library = self.engine.library
                found[need] = library.lookup(self.recipe, need, self.batch, keys)
        return found

    @cached_property
    def everywhere(self) -> KeysView[str] | None:
        """The steps whose values each page has; None where not all pages have the same."""
        alike = all(len(values) == len(self.chains) for values in self.found.values())
        return self.found.keys() if alike else None


class _PageNeeds(Mapping[str, Any]):
    __slots__ = ("_needs", "_page_id")

    def __init__(self, needs: Needs, page_id: str) -> None:
        self._needs = needs
        self._page_id = page_id

    def __getitem__(self, step: str) -> Any:
        return self._needs.found[step][self._page_id]

    def keys(self) -> KeysView[str]:
        """Its steps; a dict, which is made of them for each page, asks for nothing more."""
        everywhere = self._needs.everywhere
        return dict.fromkeys(self).keys() if everywhere is None else everywhere

    def __iter__(self) -> Iterator[str]:
        page_id = self._page_id
        return iter([step for step, values in self._needs.found.items() if page_id in values])

    def __len__(self) -> int:
        return sum(1 for _ in self)
