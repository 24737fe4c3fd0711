"""Learns how many batches stand with few calls: from a provider's list, the rest one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from .json_values import as_text
from .provider import BatchStatus

__all__ = ["listed_statuses"]


def listed_statuses(
    ids: Collection[str],
    pages: Iterable[Sequence[Mapping[str, Any]]],
    *,
    key: str,
    status: Callable[[Mapping[str, Any]], BatchStatus],
    one: Callable[[str], BatchStatus],
    patience: Callable[[int], int],
) -> Mapping[str, BatchStatus]:
    """How each batch stands; every id gets an answer.

    `pages` are those of the list, read while more than one is looked for; `key` names the id in an
    entry, of which `status` tells the state. `patience` says how many pages in a row may name none
    of so many that are left. `one` asks for a single batch.
    """
    left = set(ids)
    found: dict[str, BatchStatus] = {}
    barren = 0
    for page in pages if len(left) > 1 else ():
        here = {as_text(entry.get(key)): entry for entry in page}
        named = left & here.keys()
        found |= {id: status(here[id]) for id in named}
        left -= named
        barren = 0 if named else barren + 1
        if len(left) < 2 or barren > patience(len(left)):
            break
    return found | {id: one(id) for id in sorted(left)}
