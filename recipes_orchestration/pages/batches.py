"""Cutting new pages into batches. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

__all__ = ["BATCH_SIZE", "cut"]

BATCH_SIZE = 500


def cut(
    page_ids: Sequence[str], *, size: int = BATCH_SIZE, next_number: int = 1
) -> list[tuple[int, tuple[str, ...]]]:
    """New pages of one folder, in their order, as `(number, page_ids)` of at most `size` pages.

    The pages must be new: a batch that exists is never cut again nor topped up, because its
    results are kept under its name. Raises `ValueError` when a page is given twice or `size` or
    `next_number` is below 1.
    """
    if size < 1 or next_number < 1:
        raise ValueError("A batch has at least one page, and batches count from 1.")
    if len(set(page_ids)) != len(page_ids):
        raise ValueError("A page can be in one batch only, and one was given twice.")
    starts = range(0, len(page_ids), size)
    return [
        (number, tuple(page_ids[start : start + size]))
        for number, start in zip(count(next_number), starts, strict=False)
    ]
