"""Where the results of a batch lie in the library. Pure, and the same on every file system."""

from __future__ import annotations

import hashlib
import re

from ..errors import LibraryError

__all__ = [
    "SUFFIX",
    "batch_folder",
    "batch_of_folder",
    "batch_path",
    "checked_name",
    "file_name",
    "is_result_file",
    "step_folder",
]

SUFFIX = ".parquet"

_BATCH_KEY = re.compile(r"(?:[-a-zA-Z0-9_]|:[0-9A-F]{2})+(?:/(?:[-a-zA-Z0-9_]|:[0-9A-F]{2})+)*")
_NAME = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_]{0,149}")

_COMPONENT_BYTES = 200  # file systems allow 255, some encrypted ones 143 to 220
_PATH_BYTES = 600  # an S3 key may have 1024 bytes, recipe, step and file name included
_KEPT_BYTES = 150
_CUT = "~~"


def step_folder(recipe: str, step: str) -> str:
    """The folder of one step below the library's root: `<recipe>/<step>`."""
    return f"{checked_name(recipe, 'recipe')}/{checked_name(step, 'step')}"


def batch_folder(recipe: str, step: str, batch: str) -> str:
    """The folder that holds one batch's result files, below the library's root.

    The batch key with `:` written as `~`: `:` cannot stand in a file name on Windows and SMB, and
    `=` would be taken for a Hive partition by pandas, pyarrow and DuckDB. A component that is too
    long keeps its beginning, then `~~` and a hash; no whole key ever has `~~`. Different keys
    always give different folders. Raises `LibraryError` for what is not a batch key.
    """
    if not _BATCH_KEY.fullmatch(batch):
        raise LibraryError(
            f"{batch!r} is not a batch key, so it has no place in the library; "
            "`recipes status` lists the batches there are."
        )
    return f"{step_folder(recipe, step)}/{_batch_path(batch)}"


def batch_path(source: str, batch: str) -> str:
    """A relative path for what belongs to one batch of a source and to no recipe.

    Of letters, digits and `-_~/`; written as in `batch_folder`.
    """
    return f"{checked_name(source, 'source')}/{_batch_path(batch)}"


def _batch_path(batch: str) -> str:
    folder, slash, number = batch.rpartition("/")
    if len(batch) > _PATH_BYTES:
        folder = _shortened(folder.replace("/", "_"), hashed=folder)
    else:
        folder = "/".join(_fitting(component) for component in folder.split("/"))
    return f"{folder}{slash}{_fitting(number)}".replace(":", "~")


def batch_of_folder(folder: str) -> str | None:
    """The batch key whose folder below `<recipe>/<step>` this is.

    None when a component was shortened: then the key stands in the metadata of its files. None as
    well for a folder that no batch key gives.
    """
    if _CUT in folder or ":" in folder:
        return None
    key = folder.replace("~", ":")
    return key if _BATCH_KEY.fullmatch(key) else None


def file_name(task: str, part: int | None, digest: str) -> str:
    """`<task>[.<part>].<digest>.parquet`.

    The digest is of the rows, so a file is never replaced by one with other rows, and equal rows
    have one name. Raises `LibraryError` for a task that cannot be a file name.
    """
    middle = "" if part is None else f".{part:04d}"
    return f"{checked_name(task, 'task')}{middle}.{digest}{SUFFIX}"


def is_result_file(name: str) -> bool:
    """Whether a file of that name holds results: temporary names begin with a dot."""
    return name.endswith(SUFFIX) and not name.startswith(".")


def checked_name(name: str, what: str) -> str:
    """The name itself; `LibraryError` when it is not letters, digits, `-` and `_` (150 at most)."""
    if not _NAME.fullmatch(name):
        raise LibraryError(
            f"The {what} name {name!r} cannot be a path in the library: use at most 150 letters, "
            "digits, '-' and '_', not beginning with '-'."
        )
    return name


def _fitting(component: str) -> str:
    if len(component) <= _COMPONENT_BYTES:
        return component
    return _shortened(component, hashed=component)


def _shortened(text: str, *, hashed: str) -> str:
    digest = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    return f"{text[:_KEPT_BYTES]}{_CUT}{digest}"
