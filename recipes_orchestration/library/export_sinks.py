"""Where an export goes: one file or a folder of files, each seen whole or not at all."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from ..errors import LibraryError

__all__ = ["FolderSink", "whole_file"]


@contextmanager
def whole_file(
    out: str, storage_options: Mapping[str, Any] | None = None
) -> Generator[IO[bytes], None, None]:
    """A binary stream whose bytes become the file `out` (path or fsspec URL) when all went well.

    Until then they are in a temporary file, and after an error there is none. Raises
    `LibraryError` when `out` cannot be written.
    """
    fs, path = _opened(out, storage_options)
    local = isinstance(fs, LocalFileSystem)
    try:
        if local:
            if Path(path).is_dir():
                raise LibraryError(f"{out} is a folder; name a file for this format of export.")
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that it can be renamed into its place.
        folder = str(Path(path).parent) if local else None
        descriptor, temporary = tempfile.mkstemp(prefix=".writing-", dir=folder)
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                yield cast(IO[bytes], stream)
                stream.flush()
                os.fsync(stream.fileno())
            if local:
                Path(temporary).chmod(0o666 & ~_umask())
                Path(temporary).replace(path)
            else:
                with _told(out):
                    fs.put_file(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
    except OSError as error:
        raise _unwritable(out, error) from error


class FolderSink:
    """A folder (path or fsspec URL) that files of an export are put into."""

    def __init__(self, out: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self._out = out
        self._fs, self._root = _opened(out, storage_options)
        self._local = isinstance(self._fs, LocalFileSystem)

    def put(self, files: Mapping[str, bytes]) -> None:
        """Writes each file, its path relative to the folder. Raises `LibraryError`."""
        try:
            if self._local:
                for name, data in files.items():
                    self._put_local(Path(self._root) / name, data)
            elif files:
                # Many objects at the same time, where the file system can.
                root = self._root.rstrip("/")
                with _told(self._out):
                    self._fs.pipe({f"{root}/{name}": data for name, data in files.items()})
        except OSError as error:
            raise _unwritable(self._out, error) from error

    def _put_local(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".writing-{secrets.token_hex(8)}")
        try:
            try:
                temporary.write_bytes(data)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _opened(out: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    try:
        return url_to_fs(out, **(storage_options or {}))
    except (ImportError, ValueError, TypeError, OSError) as error:
        raise LibraryError(f"The export cannot be written there ({error}).") from error


@contextmanager
def _told(out: str) -> Generator[None, None, None]:
    # Each backend has exceptions of its own: what it raises is told, whatever it is.
    try:
        yield
    except Exception as error:
        raise _unwritable(out, error) from error


def _unwritable(out: str, error: Exception) -> LibraryError:
    return LibraryError(f"The export to {out} could not be written ({error}); it is not complete.")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
