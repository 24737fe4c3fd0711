"""The pages of every source, and the batches that they are cut into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import starmap

import sqlalchemy as sa

from .connection import Database, among
from .page_rows import (
    BATCH_PAGE_COLUMNS,
    PAGE_COLUMNS,
    BatchPage,
    BatchRow,
    FoundPage,
    PageRow,
    below,
    select_batches,
)
from .recording import record_pages
from .tables import batches, pages

__all__ = ["BatchPage", "BatchRow", "FoundPage", "PageBook", "PageRow"]

_PAGES_AT_ONCE = 4000
# Rows that are fetched at a time: all of them, beside what they become, would take twice as much.
_FETCHED_AT_ONCE = 500
# About 10 MB.
_REMEMBERED = 20_000


class PageBook:
    """Which pages there are, where, and in which batch. Every call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read: tuple[tuple[str, str, int | None], tuple[BatchPage, ...]] = ("", "", None), ()

    def folders(self, source: str) -> list[str]:
        """The folders that have or had pages, in bytewise order."""
        query = (
            sa.select(pages.c.folder)
            .where(pages.c.source == source)
            .distinct()
            .order_by(pages.c.folder)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def rows_of_folder(self, source: str, folder: str) -> list[PageRow]:
        """The pages of one folder without its subfolders, gone ones included, by page_id."""
        query = (
            sa.select(*PAGE_COLUMNS)
            .outerjoin(batches, pages.c.batch_id == batches.c.id)
            .where(pages.c.source == source, pages.c.folder == folder)
            .order_by(pages.c.page_id)
        )
        with self._database.reading() as connection:
            # One after another: all rows at once, beside what they become, take twice as long.
            return list(starmap(PageRow, connection.execute(query)))

    def changed(self, source: str, page_ids: Collection[str]) -> dict[str, datetime]:
        """Since when each of the pages has the bytes that it has."""
        query = sa.select(pages.c.page_id, pages.c.changed_at).where(pages.c.source == source)
        with self._database.reading() as connection:
            found = connection.execute(query.where(among(connection, pages.c.page_id, page_ids)))
            return dict(found.all())

    def stamps(self, source: str, folder: str) -> dict[str, str]:
        """The stamp of each file of one folder that is not gone."""
        query = (
            sa.select(pages.c.file, pages.c.stamp)
            .where(pages.c.source == source, pages.c.folder == folder, pages.c.gone_at.is_(None))
            .distinct()
        )
        with self._database.reading() as connection:
            return dict(connection.execute(query).all())

    def stamps_of_source(self, source: str) -> Iterator[tuple[str, str, str]]:
        """`(folder, file, stamp)` of each file that is not gone, by folder and file.

        One query, streamed: memory does not grow with the source. The read transaction lasts
        until the iterator is used up or closed.
        """
        query = (
            sa.select(pages.c.folder, pages.c.file, pages.c.stamp)
            .where(pages.c.source == source, pages.c.gone_at.is_(None))
            .order_by(pages.c.folder, pages.c.file)
            .execution_options(yield_per=2000)
        )
        with self._database.reading() as connection, connection.execute(query) as result:
            last = None
            for folder, file, stamp in result:
                if file != last:  # the pages of one file follow each other
                    yield folder, file, stamp
                last = file

    def record(
        self,
        source: str,
        folder: str,
        *,
        upsert: Sequence[FoundPage],
        gone: Collection[str],
        new_batches: Sequence[tuple[int, Sequence[str]]],
    ) -> list[str]:
        """Writes what was found in one folder, and gives the keys of the batches it made.

        A page that is back is no longer gone and keeps its batch and position. `gone` are
        page_ids. `new_batches` are a number and the page_ids in order, from position 0. When
        another discovery was faster, a page that has a batch stays in it, a batch without pages
        left is not made, and one whose number is taken gets the next free number.
        """
        return self._database.write(
            lambda connection: record_pages(connection, source, folder, upsert, gone, new_batches)
        )

    def batches(self, source: str, folder: str | None = None) -> list[BatchRow]:
        """The batches with their counts, by folder and number; `folder` with its subfolders."""
        query = select_batches().where(batches.c.source == source)
        if folder is not None:
            query = query.where(below(folder))
        with self._database.reading() as connection:
            return [BatchRow(*row) for row in connection.execute(query)]

    def batch(self, source: str, key: str) -> BatchRow | None:
        """One batch with its counts; None when there is none of that key."""
        query = select_batches().where(batches.c.source == source, batches.c.key == key)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else BatchRow(*row)

    def in_batch(self, source: str, key: str) -> list[BatchPage]:
        """The pages of one batch by position, gone ones included.

        Those that were read last are remembered: a batch is looked at, sent, landed and looked at
        again, and its version tells whether its pages were written meanwhile.
        """
        which = (batches.c.source == source, batches.c.key == key)
        query = (
            sa.select(*BATCH_PAGE_COLUMNS)
            .join(batches, pages.c.batch_id == batches.c.id)
            .where(*which)
            .order_by(pages.c.position)
        )
        found: list[BatchPage] = []
        with self._database.reading() as connection:
            # Before the pages: what is written in between makes them newer than it says, not older.
            version = connection.scalar(sa.select(batches.c.version).where(*which))
            known, rows = self._read
            if known == (source, key, version):
                return list(rows)
            for portion in connection.execute(query).partitions(_FETCHED_AT_ONCE):
                found.extend(map(BatchPage._make, portion))
        if version is not None and len(found) <= _REMEMBERED:
            self._read = (source, key, version), tuple(found)
        return found

    def iter_batches(
        self, source: str, folder: str | None = None
    ) -> Iterator[tuple[BatchRow, list[BatchPage]]]:
        """Each batch with its pages, by folder and number; `folder` with its subfolders.

        In memory are the pages of one batch, or of several small ones. Between the portions no
        transaction is open, so the caller may take its time.
        """
        for portion in _by_pages(self.batches(source, folder)):
            of_batch = self._in_batches(source, [batch.key for batch in portion])
            for batch in portion:
                yield batch, of_batch.pop(batch.key, [])
            del of_batch  # or this portion would still be there when the next one is read

    def _in_batches(self, source: str, keys: Sequence[str]) -> dict[str, list[BatchPage]]:
        query = (
            sa.select(batches.c.key, *BATCH_PAGE_COLUMNS)
            .join(batches, pages.c.batch_id == batches.c.id)
            .where(batches.c.source == source, batches.c.key.in_(keys))
            .order_by(pages.c.position)
        )
        found: dict[str, list[BatchPage]] = defaultdict(list)
        with self._database.reading() as connection:
            for portion in connection.execute(query).partitions(_FETCHED_AT_ONCE):
                for key, *page in portion:
                    found[key].append(BatchPage._make(page))
        return found

    def touched(self, source: str, since: datetime) -> list[str]:
        """The keys of the batches with a page that came, changed or went since then (UTC)."""
        query = (
            sa.select(batches.c.key)
            .where(batches.c.source == source)
            .where(
                sa.select(pages.c.id)
                .where(pages.c.batch_id == batches.c.id, pages.c.changed_at >= since)
                .exists()
            )
            .order_by(batches.c.key)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def twins(
        self, sha256s: Collection[str], *, beside: tuple[str, str]
    ) -> dict[str, list[tuple[str, str, str]]]:
        """For each hash, where else such a page is: `(source, batch key, page_id)`.

        `beside` is the source and key of the batch whose pages have the hashes. Gone pages count,
        as their results are kept. A hash that is nowhere else is not in the answer.
        """
        wanted = set(sha256s)
        if not wanted:
            return {}
        # The batch's hashes are joined in the database: they need not travel there and back. First
        # the pages of equal hash alone, which are few as a rule.
        own = sa.select(batches.c.id).where(batches.c.source == beside[0])
        own = own.where(batches.c.key == beside[1]).scalar_subquery()
        here, there = pages.alias(), pages.alias()
        equal = (
            sa.select(there.c.id)
            .select_from(here)
            .join(there, sa.and_(there.c.sha256 == here.c.sha256, there.c.id != here.c.id))
            .where(here.c.batch_id == own)
        )
        query = (
            sa.select(pages.c.sha256, pages.c.source, batches.c.key, pages.c.page_id)
            .join(batches, pages.c.batch_id == batches.c.id)
            .where(pages.c.id.in_(equal), pages.c.batch_id != own)
            .order_by(pages.c.source, batches.c.folder, batches.c.number, pages.c.position)
        )
        answer: dict[str, list[tuple[str, str, str]]] = {}
        with self._database.reading() as connection:
            for sha256, source, key, page_id in connection.execute(query):
                if sha256 in wanted:
                    answer.setdefault(sha256, []).append((source, key, page_id))
        return answer

    def find(self, page_id: str, source: str | None = None) -> list[tuple[str, PageRow]]:
        """The pages of that id with their sources, in one source or in all."""
        query = (
            sa.select(pages.c.source, *PAGE_COLUMNS)
            .outerjoin(batches, pages.c.batch_id == batches.c.id)
            .where(pages.c.page_id == page_id)
            .order_by(pages.c.source)
        )
        if source is not None:
            query = query.where(pages.c.source == source)
        with self._database.reading() as connection:
            return [(row[0], PageRow._make(row[1:])) for row in connection.execute(query)]


def _by_pages(rows: Sequence[BatchRow]) -> Iterator[list[BatchRow]]:
    portion: list[BatchRow] = []
    held = 0
    for row in rows:
        size = row.pages + row.gone
        if portion and held + size > _PAGES_AT_ONCE:
            yield portion
            portion, held = [], 0
        portion.append(row)
        held += size
    if portion:
        yield portion
