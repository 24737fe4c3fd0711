"""Page files in any store that fsspec speaks to: S3, memory, and others by their URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import fsspec
from fsspec.core import url_to_fs

from ..errors import PageUnreadable, SourceError
from .filetypes import is_litter, is_page_file
from .listing import FileEntry, FileGone, FolderListing, listing_of
from .local_disk import too_large
from .naming import ROOT, name_from_text, name_to_bytes, shown

__all__ = ["ObjectStore"]

# Whichever a store gives; the first that is there says whether the file has changed.
_STAMPS = (
    *("ETag", "etag", "md5Hash", "content_md5", "checksum"),
    *("mtime", "LastModified", "last_modified", "modified", "updated", "created"),
)


@dataclass(frozen=True)
class ObjectStore:
    """The files under an fsspec URL. Listings are always asked for anew, never remembered."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @cached_property
    def _opened(self) -> tuple[fsspec.AbstractFileSystem, str]:
        # Other processes write; a remembered listing would hide their files.
        options = {**self.options, "use_listings_cache": False}
        try:
            return url_to_fs(self.url, **options)
        except ImportError as error:
            raise SourceError(
                f"The source {shown(self.url)} needs a package that is not installed ({error}); "
                "for s3:// install the extra 'aws'."
            ) from error
        except (ValueError, OSError) as error:
            raise SourceError(
                f"The source {shown(self.url)} could not be opened: {error}."
            ) from error

    def list_folder(self, folder: str, *, hidden: bool) -> FolderListing:
        """The folder's listing; raises `SourceError` when it cannot be listed."""
        store, _ = self._opened
        path = self._path(folder)
        try:
            entries: list[dict[str, Any]] = store.ls(path, detail=True)
        except FileNotFoundError as error:
            raise SourceError(
                f"{self._named(folder)} does not exist; check the bucket and prefix."
            ) from error
        except Exception as error:  # every store has its own tree of errors
            raise SourceError(
                f"{self._named(folder)} could not be listed: {_words(error)}."
            ) from error
        prefix = "" if folder == ROOT else f"{folder}/"
        files: dict[str, FileEntry] = {}
        subfolders: set[str] = set()
        ignored = 0
        for entry in entries:
            full = str(entry["name"]).rstrip("/")
            # A marker of the folder itself, or a doubled slash that would lead back here.
            if full == path.rstrip("/"):
                ignored += entry["type"] == "directory"
                continue
            name = name_from_text(full.rpartition("/")[2])
            if name in {"", ".", ".."} or "\0" in name or is_litter(name, hidden=hidden):
                ignored += 1
            elif entry["type"] == "directory":
                subfolders.add(name)
            elif entry["type"] == "file" and is_page_file(name):
                size = int(entry.get("size") or 0)
                files[name] = FileEntry(prefix + name, folder, size, _stamp(size, entry))
            else:
                ignored += 1
        return listing_of(folder, files, subfolders, ignored)

    def read(self, file: str, max_bytes: int) -> bytes:
        """The file's bytes.

        Raises `SourceError` when it cannot be fetched and `PageUnreadable` when it is larger
        than `max_bytes`.
        """
        store, _ = self._opened
        path = self._path(file)
        try:
            size = int(store.info(path).get("size") or 0)
            data: bytes = b"" if size > max_bytes else cast("bytes", store.cat_file(path))
        except FileNotFoundError as error:
            raise FileGone("The file is not there.") from error
        except Exception as error:  # every store has its own tree of errors
            raise SourceError(f"The file could not be fetched: {_words(error)}.") from error
        if size > max_bytes:
            raise PageUnreadable(too_large(size, max_bytes))
        return data

    def _path(self, name: str) -> str:
        _, root = self._opened
        if name == ROOT:
            return root
        if ".." in name.split("/"):
            raise SourceError(f"{shown(name)} leads out of the source.")
        text = name_to_bytes(name).decode("utf-8", "surrogatepass")
        return f"{root.rstrip('/')}/{text}"

    def _named(self, folder: str) -> str:
        if folder == ROOT:
            return f"The source {shown(self.url)}"
        return f"The folder {shown(folder)} of {shown(self.url)}"


def _stamp(size: int, entry: Mapping[str, Any]) -> str:
    for name in _STAMPS:
        if value := entry.get(name):
            text = value.isoformat() if hasattr(value, "isoformat") else str(value)
            return f"{size}-{text.strip(chr(34))}"
    return str(size)


def _words(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0][:300].rstrip(".")
    return shown(first) or type(error).__name__
