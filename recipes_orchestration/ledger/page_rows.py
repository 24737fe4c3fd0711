"""What the ledger tells of pages and batches, and the queries which give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from .tables import batches, pages

__all__ = [
    "BATCH_PAGE_COLUMNS",
    "PAGE_COLUMNS",
    "BatchPage",
    "BatchRow",
    "FoundPage",
    "PageRow",
    "below",
    "select_batches",
]


class PageRow(NamedTuple):
    """One page. `batch` is its batch's key and `position` counts from 0; None when not cut yet.

    `frame` counts from 0 within a multi-page file. `size` is the file's, in bytes. `problem` is
    why the page cannot be read, `gone` that its file was not found at the last look.
    """

    page_id: str
    file: str
    frame: int | None
    folder: str
    batch: str | None
    position: int | None
    sha256: str
    size: int
    stamp: str
    problem: str | None
    gone: bool


class BatchPage(NamedTuple):
    """One page of a batch, with as much as its steps need to know of it; the rest is in `PageRow`.

    A look at a batch reads one for each page.
    """

    page_id: str
    file: str
    frame: int | None
    sha256: str
    problem: str | None
    gone: bool


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch and its counts: `pages` are those not gone, `problems` those of them unreadable."""

    source: str
    key: str
    folder: str
    number: int
    pages: int
    gone: int
    problems: int


@dataclass(frozen=True, slots=True)
class FoundPage:
    """One page as discovery found it. `stamp` changes whenever the file may have changed."""

    page_id: str
    file: str
    frame: int | None
    sha256: str
    size: int
    stamp: str
    problem: str | None = None


PAGE_COLUMNS: tuple[sa.ColumnElement[Any], ...] = (
    pages.c.page_id,
    pages.c.file,
    pages.c.frame,
    pages.c.folder,
    batches.c.key,
    pages.c.position,
    pages.c.sha256,
    pages.c.size,
    pages.c.stamp,
    pages.c.problem,
    pages.c.gone_at.is_not(None),
)
"""The columns of a `PageRow` in its order; `batches` must be joined from outside."""


BATCH_PAGE_COLUMNS: tuple[sa.ColumnElement[Any], ...] = (
    pages.c.page_id,
    pages.c.file,
    pages.c.frame,
    pages.c.sha256,
    pages.c.problem,
    pages.c.gone_at.is_not(None),
)
"""The columns of a `BatchPage` in its order."""


def select_batches() -> sa.Select[*tuple[Any, ...]]:
    """The columns of a `BatchRow`, by folder and number. One pass over the pages, counted there."""
    there = sa.and_(pages.c.id.is_not(None), pages.c.gone_at.is_(None))

    def count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    return (
        sa.select(
            batches.c.source,
            batches.c.key,
            batches.c.folder,
            batches.c.number,
            count(there),
            count(pages.c.gone_at.is_not(None)),
            count(sa.and_(there, pages.c.problem.is_not(None))),
        )
        .outerjoin(pages, pages.c.batch_id == batches.c.id)
        .group_by(batches.c.id)
        .order_by(batches.c.folder, batches.c.number)
    )


def below(folder: str) -> sa.ColumnElement[bool]:
    """Batches of the folder and of its subfolders; `.` is the source itself, so all."""
    if folder == ".":
        return sa.true()
    # LIKE would take % and _ as wildcards, and on SQLite it does not tell a from A.
    inside = f"{folder}/"
    return sa.or_(
        batches.c.folder == folder,
        sa.func.substr(batches.c.folder, 1, len(inside)) == inside,
    )
