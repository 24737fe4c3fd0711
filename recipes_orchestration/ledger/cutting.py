"""Makes batches and gives pages their places in them, when two discoveries do it at once too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from ..errors import LedgerError
from ..pages.naming import batch_key
from .connection import portions
from .tables import batches, pages

__all__ = ["Cut", "cut_pages"]


@dataclass(frozen=True)
class Cut:
    """The keys of the batches made, and the (batch id, position) of pages yet to be inserted."""

    keys: list[str] = field(default_factory=list[str])
    seats: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def cut_pages(
    connection: sa.Connection,
    source: str,
    folder: str,
    wanted: Sequence[tuple[int, Sequence[str]]],
    arriving: Collection[str],
    now: datetime,
) -> Cut:
    """Makes the wanted batches of the pages that have none yet.

    Pages in `arriving` are inserted by the caller and only given a seat. Raises `LedgerError` for
    a page that is neither arriving nor in the ledger.
    """
    cut = Cut()
    if not wanted:
        return cut
    known = _batch_of(connection, source, [page_id for _, ids in wanted for page_id in ids])
    taken = set(
        connection.scalars(
            sa.select(batches.c.number).where(
                batches.c.source == source, batches.c.folder == folder
            )
        )
    )
    late: list[dict[str, object]] = []
    for asked, page_ids in wanted:
        left = [
            page_id
            for page_id in dict.fromkeys(page_ids)
            if known.get(page_id) is None and page_id not in cut.seats
        ]
        if not left:
            continue
        number = max(taken) + 1 if asked in taken else asked
        taken.add(number)
        key = batch_key(folder, number)
        batch_id = connection.scalar(
            sa.insert(batches)
            .values(source=source, key=key, folder=folder, number=number, created_at=now)
            .returning(batches.c.id)
        )
        assert batch_id is not None
        cut.keys.append(key)
        for position, page_id in enumerate(left):
            if page_id not in arriving and page_id not in known:
                raise LedgerError(
                    f"The page {page_id!r} was to be put into the batch {key} and is not in the "
                    "ledger: record it in the same call or before."
                )
            cut.seats[page_id] = (batch_id, position)
            if page_id not in arriving:
                late.append({"page": page_id, "batch": batch_id, "seat": position})
    if late:
        connection.execute(
            sa.update(pages)
            .where(pages.c.source == source, pages.c.page_id == sa.bindparam("page"))
            .values(batch_id=sa.bindparam("batch"), position=sa.bindparam("seat")),
            late,
        )
    return cut


def _batch_of(
    connection: sa.Connection, source: str, page_ids: Sequence[str]
) -> dict[str, int | None]:
    answer: dict[str, int | None] = {}
    for portion in portions(page_ids):
        query = sa.select(pages.c.page_id, pages.c.batch_id).where(
            pages.c.source == source, pages.c.page_id.in_(portion)
        )
        answer.update(connection.execute(query).all())
    return answer
