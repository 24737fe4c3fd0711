"""Discovery: what lies in a source now, against what the ledger knows of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..errors import SourceError
from ..ledger.database import Ledger
from ..ledger.page_rows import BatchPage
from ..pages.batches import BATCH_SIZE
from ..pages.listing import FolderListing
from ..pages.naming import folder_order, natural_key, shown
from ..pages.source import Source
from .folder_changes import FolderChanges, Tally

__all__ = ["Discovered", "data_version", "discover"]

OnFolder = Callable[[str, int], None]

# A folder in work is left at the next whole batch once the time is up, and at any file after this.
_LATEST = 1.5


@dataclass(frozen=True)
class Discovered:
    """What one discovery saw and wrote.

    `folders` and `files` were looked at and `ignored` passed over; `unchanged` files were not
    opened. `new`, `changed` and `gone` count pages; a page that is back counts as changed, as
    does one whose reason for being unreadable is another. `problems` of the pages found now
    cannot be read. `unlisted` are folders that could not be listed, with the reason. `batches`
    are the keys of the batches whose pages are no longer what they were, new ones included.
    `cursor` is what to give as `after` to go on; None when the walk came to its end.
    """

    source: str
    folders: int = 0
    files: int = 0
    ignored: int = 0
    unchanged: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    problems: int = 0
    unlisted: tuple[tuple[str, str], ...] = ()
    batches: tuple[str, ...] = ()
    cursor: str | None = None


@dataclass
class _Walk:
    source: Source
    ledger: Ledger
    batch_size: int
    soft: float
    hard: float
    tally: Tally = field(default_factory=Tally)
    unlisted: dict[str, str] = field(default_factory=dict[str, str])

    def folder(self, listing: FolderListing, *, known: bool) -> bool:
        """Records one folder; whether that came to its end before the time was up."""
        name = self.source.name
        stamps = self.ledger.pages.stamps(name, listing.folder) if known else {}
        fresh = [entry for entry in listing.files if stamps.get(entry.file) != entry.stamp]
        vanished: set[str] = set()
        if listing.problem is None:
            vanished = stamps.keys() - {entry.file for entry in listing.files}
        self.tally.unchanged += len(listing.files) - len(fresh)
        if not fresh and not vanished:
            return True
        changes = FolderChanges(
            self.ledger.pages, name, listing.folder, self.batch_size, self.tally, known=known
        )
        changes.vanish(vanished)
        return changes.read(self.source.reader, fresh, self.soft, self.hard)

    def lost_folder(self, folder: str) -> None:
        """Marks the pages of a folder that is not there any more."""
        if any(_inside(folder, above) for above in self.unlisted):
            return
        stamps = self.ledger.pages.stamps(self.source.name, folder)
        if stamps:
            changes = FolderChanges(
                self.ledger.pages, self.source.name, folder, self.batch_size, self.tally, known=True
            )
            changes.vanish(stamps.keys())
            changes.flush()


def discover(
    source: Source,
    ledger: Ledger,
    *,
    batch_size: int = BATCH_SIZE,
    after: str | None = None,
    budget_seconds: float | None = None,
    on_folder: OnFolder | None = None,
) -> Discovered:
    """Looks through a source and brings the ledger's pages and batches up to date.

    Only files whose stamp is another are read and hashed. New pages make new batches, in natural
    order; pages that are gone are marked so, and keep their place and results. What is written is
    whole at every moment: after a kill, the next discovery does the rest. Two may run at once.

    With `budget_seconds` it stops when the time is up, after a folder or, in one with very many
    new files, after a whole batch of it, and at the latest half as much time later. `after` is
    the `cursor` of such a discovery. `on_folder` is told each folder and its number of page
    files. Raises `SourceError` when the root cannot be listed, or is empty though the ledger
    knows pages in it: a disk that is not mounted must not make every page gone.
    """
    started = time.monotonic()
    budget = float("inf") if budget_seconds is None else budget_seconds
    walk = _Walk(source, ledger, batch_size, started + budget, started + budget * _LATEST)
    _check_root(source, ledger)
    behind = None if not after else folder_order(after)
    known = set(ledger.pages.folders(source.name))
    # Last first, so that the next one in the order of the walk is at the end.
    expected = sorted(known, key=folder_order, reverse=True)
    while behind is not None and expected and folder_order(expected[-1]) <= behind:
        expected.pop()

    folders = files = ignored = 0
    cursor = after or ""
    for listing in source.walk(after=after or None):
        order = folder_order(listing.folder)
        if listing.problem is not None:
            walk.unlisted[listing.folder] = listing.problem
        while expected and folder_order(expected[-1]) < order:
            walk.lost_folder(expected.pop())
        if expected and expected[-1] == listing.folder:
            expected.pop()
        whole = walk.folder(listing, known=listing.folder in known)
        folders += 1
        files += len(listing.files)
        ignored += listing.ignored
        if on_folder is not None:
            on_folder(listing.folder, len(listing.files))
        if not whole:
            break
        if behind is None or order > behind:
            cursor = listing.folder
        if time.monotonic() > walk.soft:
            break
    else:
        for folder in reversed(expected):
            walk.lost_folder(folder)
        cursor = None

    tally = walk.tally
    return Discovered(
        source=source.name,
        folders=folders,
        files=files,
        ignored=ignored,
        unchanged=tally.unchanged,
        new=tally.new,
        changed=tally.changed,
        gone=tally.gone,
        problems=tally.problems,
        unlisted=tuple(walk.unlisted.items()),
        batches=tuple(sorted(tally.batches, key=natural_key)),
        cursor=cursor,
    )


def data_version(pages: Iterable[BatchPage]) -> str:
    """What the pages of a batch are now, as 32 hexadecimal digits: their names and hashes.

    Gone pages do not count, and neither does the order in which they are given.
    """
    there = sorted((page.page_id, page.sha256) for page in pages if not page.gone)
    digest = hashlib.sha256()
    for page_id, sha256 in there:
        # A name may contain anything but NUL, so nothing else may stand between two fields.
        digest.update(f"{page_id}\0{sha256}\0".encode())
    return digest.hexdigest()[:32]


def _check_root(source: Source, ledger: Ledger) -> None:
    if not source.list_root().empty:
        return
    if not any(batch.pages for batch in ledger.pages.batches(source.name)):
        return
    raise SourceError(
        f"The source {shown(source.root)} is empty, but had pages before; is the disk mounted? "
        "If they were truly removed, leave any file there (an empty '.keep' will do)."
    )


def _inside(folder: str, above: str) -> bool:
    return above == "." or folder == above or folder.startswith(f"{above}/")
