"""What has changed in one folder of a source, gathered and written in whole portions."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from ..ledger.page_rows import FoundPage, PageRow
from ..ledger.pages import PageBook
from ..pages.batches import cut
from ..pages.naming import split_batch_key
from ..pages.probe import ProbedPage
from ..pages.source import FileEntry, SourceReader
from .probing import probe_files

__all__ = ["FolderChanges", "Tally"]

# So many new pages are written even where that ends a batch early: memory is bounded, and a kill
# costs no more than reading these again.
_PAGES_AT_ONCE = 10_000


@dataclass
class Tally:
    """Counts of a discovery so far, and the keys of the batches that are not what they were."""

    unchanged: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    problems: int = 0
    batches: set[str] = field(default_factory=set[str])


class FolderChanges:
    """Gathers the changes of one folder and writes them, never half of a file's pages."""

    def __init__(
        self,
        book: PageBook,
        source: str,
        folder: str,
        batch_size: int,
        tally: Tally,
        *,
        known: bool,
    ) -> None:
        self._book = book
        self._source = source
        self._folder = folder
        self._size = batch_size
        self._tally = tally
        self._rows: dict[str, PageRow] = {}
        self._of_file: dict[str, list[PageRow]] = defaultdict(list)
        self._next_number = 1
        if known:
            self._learn(book.rows_of_folder(source, folder))
        self._upsert: list[FoundPage] = []
        self._uncut: list[str] = []
        self._gone: list[str] = []

    def _learn(self, rows: Sequence[PageRow]) -> None:
        self._rows = {row.page_id: row for row in rows}
        for row in rows:
            self._of_file[row.file].append(row)
            if row.batch is not None:
                self._next_number = max(self._next_number, split_batch_key(row.batch)[1] + 1)

    def vanish(self, files: Collection[str]) -> None:
        """Marks all pages of these files as gone."""
        for file in files:
            for row in self._of_file[file]:
                self._lose(row)

    def read(
        self, reader: SourceReader, entries: Sequence[FileEntry], soft: float, hard: float
    ) -> bool:
        """Reads the files and writes their pages; whether all of them were read in time.

        After the moment `soft` (of the monotonic clock) it stops where a whole batch is filled,
        after `hard` at any file.
        """
        left = len(entries)
        with closing(probe_files(reader, entries)) as probed:
            for entry, pages in probed:
                left -= 1
                if pages is not None:
                    self._find(entry.file, pages)
                filled = bool(self._uncut) and len(self._uncut) % self._size == 0
                if filled or len(self._uncut) >= _PAGES_AT_ONCE:
                    self.flush()
                now = time.monotonic()
                if left and (now > hard or (now > soft and not self._uncut)):
                    break
        self.flush()
        return not left

    def flush(self) -> None:
        """Writes what was gathered, in one transaction."""
        if not (self._upsert or self._gone):
            return
        new_batches = cut(self._uncut, size=self._size, next_number=self._next_number)
        keys = self._book.record(
            self._source,
            self._folder,
            upsert=self._upsert,
            gone=self._gone,
            new_batches=new_batches,
        )
        self._tally.batches.update(keys)
        self._next_number = max(
            [self._next_number + len(new_batches), *(split_batch_key(key)[1] + 1 for key in keys)]
        )
        self._upsert, self._uncut, self._gone = [], [], []

    def _find(self, file: str, pages: Sequence[ProbedPage]) -> None:
        for page in pages:
            row = self._rows.get(page.page_id)
            if page.problem is not None:
                self._tally.problems += 1
            if row is None or row.batch is None:
                self._tally.new += 1
                self._uncut.append(page.page_id)
            elif row.gone or (row.sha256, row.problem) != (page.sha256, page.problem):
                self._tally.changed += 1
                self._tally.batches.add(row.batch)
            elif (row.size, row.stamp) == (page.size, page.stamp):
                continue
            self._upsert.append(
                FoundPage(
                    page.page_id,
                    page.file,
                    page.frame,
                    page.sha256,
                    page.size,
                    page.stamp,
                    page.problem,
                )
            )
        found = {page.page_id for page in pages}
        for row in self._of_file.get(file, ()):
            if row.page_id not in found:
                self._lose(row)

    def _lose(self, row: PageRow) -> None:
        if row.gone:
            return
        self._tally.gone += 1
        self._gone.append(row.page_id)
        if row.batch is not None:
            self._tally.batches.add(row.batch)
