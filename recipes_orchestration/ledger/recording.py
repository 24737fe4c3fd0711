"""Writes what a discovery found in one folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from .connection import insert_into, one_at_a_time, portions
from .cutting import Cut, cut_pages
from .page_rows import FoundPage
from .tables import batches, pages

__all__ = ["record_pages"]


def record_pages(
    connection: sa.Connection,
    source: str,
    folder: str,
    upsert: Sequence[FoundPage],
    gone: Collection[str],
    new_batches: Sequence[tuple[int, Sequence[str]]],
) -> list[str]:
    """The work of `PageBook.record`, which see, in the transaction of the connection."""
    one_at_a_time(connection, "recipes ledger pages", source, folder)
    now = datetime.now(UTC)
    found = {page.page_id: page for page in upsert}
    cut = cut_pages(connection, source, folder, new_batches, set(found), now)
    if found:
        rows = [_new_row(source, folder, page, cut, now) for page in found.values()]
        connection.execute(_upsert_pages(connection), rows)
    for portion in portions(sorted(gone)):
        connection.execute(
            sa.update(pages)
            .where(pages.c.source == source, pages.c.page_id.in_(portion))
            .where(pages.c.gone_at.is_(None))
            .values(gone_at=now, changed_at=now)
        )
    if found or gone or cut.keys:
        connection.execute(
            sa.update(batches)
            .where(batches.c.source == source, batches.c.folder == folder)
            .values(version=batches.c.version + 1)
        )
    return cut.keys


def _new_row(
    source: str, folder: str, page: FoundPage, cut: Cut, now: datetime
) -> Mapping[str, object]:
    batch_id, position = cut.seats.get(page.page_id, (None, None))
    return {
        "source": source,
        "page_id": page.page_id,
        "folder": folder,
        "file": page.file,
        "frame": page.frame,
        "batch_id": batch_id,
        "position": position,
        "sha256": page.sha256,
        "size": page.size,
        "stamp": page.stamp,
        "problem": page.problem,
        "gone_at": None,
        "seen_at": now,
        "changed_at": now,
    }


def _upsert_pages(connection: sa.Connection) -> sa.Insert:
    insert = insert_into(connection, pages)
    new = insert.excluded
    same = sa.and_(
        pages.c.gone_at.is_(None),
        pages.c.sha256 == new.sha256,
        sa.func.coalesce(pages.c.problem, "") == sa.func.coalesce(new.problem, ""),
    )
    plain = ("folder", "file", "frame", "sha256", "size", "stamp", "problem", "gone_at", "seen_at")
    return insert.on_conflict_do_update(
        index_elements=[pages.c.source, pages.c.page_id],
        set_={
            **{name: new[name] for name in plain},
            "batch_id": sa.func.coalesce(pages.c.batch_id, new.batch_id),
            "position": sa.func.coalesce(pages.c.position, new.position),
            "changed_at": sa.case((same, pages.c.changed_at), else_=new.changed_at),
        },
    )
