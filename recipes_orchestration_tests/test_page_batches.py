"""Cutting new pages into batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.pages.batches import cut


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 9))
def test_every_page_is_in_one_batch_in_its_order(pages: int, size: int, first: int) -> None:
    ids = [f"p{page}" for page in range(pages)]
    batches = cut(ids, size=size, next_number=first)
    assert [page for _, batch in batches for page in batch] == ids
    assert [number for number, _ in batches] == list(range(first, first + len(batches)))
    assert all(len(batch) == size for _, batch in batches[:-1])
    assert all(0 < len(batch) <= size for _, batch in batches)


def test_no_new_pages_make_no_batch() -> None:
    assert cut([], size=500, next_number=3) == []


def test_a_page_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        cut(["a", "a"])


@pytest.mark.parametrize(("size", "number"), [(0, 1), (-1, 1), (5, 0)])
def test_sizes_and_numbers_below_one_are_refused(size: int, number: int) -> None:
    with pytest.raises(ValueError, match="at least one page"):
        cut(["a"], size=size, next_number=number)
