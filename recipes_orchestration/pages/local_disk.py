"""Page files on a local or mounted disk. Names are handled as bytes, as the disk has them."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass

from ..errors import PageUnreadable, SourceError
from .filetypes import is_litter, is_page_file
from .listing import FileEntry, FileGone, FolderListing, listing_of
from .naming import ROOT, name_from_bytes, name_to_bytes, shown

__all__ = ["LocalDisk"]

_CHUNK = 1 << 20
# A pipe that took a page's place must not hold the reader for ever.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class LocalDisk:
    """The files under a folder of this machine.

    Links to folders are not followed, so every page has one name and no walk is endless; a link
    to a page is a page of its own. Pipes, sockets and devices are passed over without opening.
    """

    root: str

    def list_folder(self, folder: str, *, hidden: bool) -> FolderListing:
        """The folder's listing; raises `SourceError` when it cannot be opened."""
        path = self._path(folder)
        prefix = "" if folder == ROOT else f"{folder}/"
        files: dict[str, FileEntry] = {}
        subfolders: list[str] = []
        ignored = 0
        problem: str | None = None
        try:
            entries = os.scandir(path)
        except OSError as error:
            raise SourceError(_cannot_list(folder, self.root, error)) from error
        with entries:
            try:
                for entry in entries:
                    name = name_from_bytes(entry.name)
                    if is_litter(name, hidden=hidden):
                        ignored += 1
                    elif entry.is_dir(follow_symlinks=False):
                        subfolders.append(name)
                    elif is_page_file(name) and (page := _page_entry(entry, prefix + name, folder)):
                        files[name] = page
                    else:
                        ignored += 1
            except OSError as error:
                problem = _cannot_list(folder, self.root, error)
        return listing_of(folder, files, subfolders, ignored, problem)

    def read(self, file: str, max_bytes: int) -> bytes:
        """The file's bytes.

        Raises `SourceError` when it cannot be fetched and `PageUnreadable` when it is larger
        than `max_bytes` or no regular file.
        """
        path = self._path(file)
        try:
            descriptor = os.open(path, _OPEN_FLAGS)
        except FileNotFoundError as error:
            raise FileGone(_cannot_read(error)) from error
        except OSError as error:
            raise SourceError(_cannot_read(error)) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise PageUnreadable("This is not a regular file; it is never opened as a page.")
            if status.st_size > max_bytes:
                raise PageUnreadable(too_large(status.st_size, max_bytes))
            return _read_to_end(descriptor, max_bytes)
        except OSError as error:
            raise SourceError(_cannot_read(error)) from error
        finally:
            os.close(descriptor)

    def _path(self, name: str) -> bytes:
        root = os.fsencode(self.root)
        if name == ROOT:
            return root
        if ".." in name.split("/"):
            raise SourceError(f"{shown(name)} leads out of the source.")
        return root.rstrip(b"/") + b"/" + name_to_bytes(name)


def too_large(size: int, max_bytes: int) -> str:
    """Why a file is refused for its size."""
    return (
        f"The file has {size:,} bytes, more than the {max_bytes:,} that are read at most; "
        "cut it into smaller files."
    )


def _page_entry(entry: os.DirEntry[bytes], file: str, folder: str) -> FileEntry | None:
    try:
        status = entry.stat()
    except OSError as error:
        problem = _cannot_read(error)
        return FileEntry(file, folder, 0, f"!{errno.errorcode.get(error.errno or 0)}", problem)
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileEntry(file, folder, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


def _read_to_end(descriptor: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, _CHUNK):
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise PageUnreadable(too_large(size, max_bytes))
    return b"".join(parts)


def _cannot_list(folder: str, root: str, error: OSError) -> str:
    what = f"The source {shown(root)}" if folder == ROOT else f"The folder {shown(folder)}"
    match error.errno:
        case errno.ENOENT:
            return f"{what} does not exist; is the disk mounted?"
        case errno.ENOTDIR:
            return f"{what} is not a folder."
        case errno.EACCES | errno.EPERM:
            return f"{what} may not be listed by this user; check its permissions."
        case errno.ENAMETOOLONG:
            return f"{what} lies too deep: its path is longer than this system opens."
        case _:
            return f"{what} could not be listed: {_words(error)}."


def _cannot_read(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "The file is not there, or it is a link to a file that is not there."
        case errno.ELOOP:
            return "The file is a link that leads back to itself."
        case errno.EACCES | errno.EPERM:
            return "This user may not read the file; check its permissions."
        case errno.ENAMETOOLONG:
            return "The file's path is longer than this system opens."
        case _:
            return f"The file could not be read: {_words(error)}."


def _words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
