"""How work is cut into tasks: every page once, in order, in even parts of one rung."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.places.task_folders.packaging import cut, rung_of
from recipes_orchestration.runner.work import FailureKind, PageWork, TaskSpec

from .packed_work import COLOUR

KINDS = st.sampled_from([None, *FailureKind])


@st.composite
def specs(draw: st.DrawFn) -> TaskSpec:
    stood = draw(st.lists(st.tuples(st.integers(0, 3), KINDS), min_size=1, max_size=60))
    pages = tuple(
        PageWork(f"p{number}", "0" * 64, "p", None, ("colour",), attempts=attempts, failed=kind)
        for number, (attempts, kind) in enumerate(stood)
    )
    return TaskSpec((COLOUR,), pages, SourceReader("/nowhere"), "/nowhere")


WAYS = st.one_of(
    st.tuples(st.integers(1, 70), st.none()),
    st.tuples(st.none(), st.floats(0.001, 10_000)),
    st.tuples(st.none(), st.none()),
)


@given(specs(), WAYS)
def test_every_page_is_in_one_part(spec: TaskSpec, way: tuple[int | None, float | None]):
    parts = cut(spec, *way)
    assert sorted(page.page_id for part in parts for page in part.pages) == sorted(
        page.page_id for page in spec.pages
    )


@given(specs(), WAYS)
def test_pages_of_one_rung_keep_their_order(spec: TaskSpec, way: tuple[int | None, float | None]):
    together = [page for part in cut(spec, *way) for page in part.pages]
    assert together == sorted(spec.pages, key=rung_of)


@given(specs(), WAYS)
def test_no_part_is_empty_and_each_has_one_rung(
    spec: TaskSpec, way: tuple[int | None, float | None]
):
    assert all(len({rung_of(page) for page in part.pages}) == 1 for part in cut(spec, *way))


@given(specs(), WAYS)
def test_parts_of_one_rung_come_together_and_are_even(
    spec: TaskSpec, way: tuple[int | None, float | None]
):
    parts = cut(spec, *way)
    grouped = [
        [len(part.pages) for part in group]
        for _, group in groupby(parts, key=lambda part: rung_of(part.pages[0]))
    ]
    assert len(grouped) == len({rung_of(page) for page in spec.pages})
    assert all(max(sizes) - min(sizes) <= 1 for sizes in grouped)


@given(specs(), st.integers(1, 70))
def test_no_part_is_larger_than_asked_for(spec: TaskSpec, most: int):
    assert all(len(part.pages) <= most for part in cut(spec, most))


@given(specs(), st.floats(0.01, 4000))
def test_a_part_takes_no_longer_than_a_task(spec: TaskSpec, seconds: float):
    assert all(
        len(part.pages) * seconds <= 3600 * 1.001 or len(part.pages) == 1
        for part in cut(spec, None, seconds)
    )


def test_only_the_end_of_a_task_takes_a_page_up_the_ladder():
    def standing(kind: FailureKind | None) -> int:
        return rung_of(PageWork("p", "0" * 64, "p", None, (), attempts=2, failed=kind))

    climbing = {kind for kind in FailureKind if standing(kind)}
    assert climbing == {FailureKind.EXPIRED, FailureKind.MEMORY, FailureKind.NODE}
    assert standing(None) == 0
