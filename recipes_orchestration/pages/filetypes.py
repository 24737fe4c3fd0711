"""Which files of a folder may be pages, told by their names alone. Pure."""

from __future__ import annotations

__all__ = ["PAGE_EXTENSIONS", "is_litter", "is_page_file"]

PAGE_EXTENSIONS = frozenset(
    {
        *("jpg", "jpeg", "jpe", "jfif", "mpo", "png", "tif", "tiff", "webp", "gif", "bmp", "dib"),
        *("jp2", "j2k", "jpx", "jpf", "j2c", "jpc", "avif", "heic", "heif", "pdf"),
    }
)
"""A file without one of these is passed over: what lies beside pages is most often text."""

# Folders and files that systems, cameras, NAS boxes and version control leave behind.
_LITTER = frozenset(
    {
        *("#recycle", "#snapshot", "@eadir", "@recycle", "@tmp", "$recycle.bin", "recycler"),
        *("__macosx", "lost+found", "system volume information", "thumbs.db", "desktop.ini"),
        *("ehthumbs.db", ".ds_store", ".git", ".svn", ".hg", ".bzr", ".snapshot", ".snapshots"),
        *(".appledouble", ".spotlight-v100", ".fseventsd", ".temporaryitems", ".trash"),
        *(".trashes", ".documentrevisions-v100", ".zfs", ".stfolder", ".stversions", ".tmp"),
    }
)
_LITTER_STARTS = ("._", "~$", ".~", ".trash-", ".nfs", ".syncthing.")


def is_litter(name: str, *, hidden: bool = False) -> bool:
    """Whether a file or folder is passed over for its name.

    That is what programs leave behind, and names that start with a dot unless `hidden`.
    """
    folded = name.casefold()
    if folded.startswith("."):
        return not hidden or folded in _LITTER or folded.startswith(_LITTER_STARTS)
    return folded.startswith(_LITTER_STARTS) or folded in _LITTER


def is_page_file(name: str) -> bool:
    """Whether the name has a page's extension, in any case; trailing dots and spaces are none."""
    stem, dot, extension = name.rstrip(". ").rpartition(".")
    return bool(stem and dot) and extension.casefold() in PAGE_EXTENSIONS
