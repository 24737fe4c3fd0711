"""One runner in a task folder at a time, on any machine that sees the folder."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from pathlib import Path
from uuid import uuid4

from ..errors import PlaceError
from .task_folder import WORK

__all__ = ["BEAT_SECONDS", "FolderBusy", "FolderLock"]

BEAT_SECONDS = 10.0
"""A runner writes so often that it lives."""

_SILENT_BEATS = 7
# Lustre without `-o flock` says ENOSYS, some FUSE mounts ENOTSUP, an NFS without lockd ENOLCK.
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}


class FolderBusy(PlaceError):
    """Another runner works in the folder."""


class FolderLock:
    """The lock of a task folder: held until it is closed, and by a child that inherits it.

    It is the kernel's (`flock`), so that it ends with its last holder, however that ends. The
    file names the holder and is written anew every `beat` seconds. Where the file system has no
    locks, that beat alone decides: one that has not changed for seven beats belongs to a dead
    runner, and whoever finds another's name in the file stops. Where locks are seen on one
    machine only, two runners may both go on until the next beat of the first, which then stops;
    what both wrote is there once, because a journal keeps one line for each page and step.
    """

    def __init__(self, folder: Path, *, wait: float = 60.0, beat: float = BEAT_SECONDS) -> None:
        """Takes the lock; waits `wait` seconds for its holder to end, then `FolderBusy`."""
        self._beat = beat
        self._name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:12]}"
        self._count = 0
        self._path = folder / WORK / "lock"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not self._lock(time.monotonic() + wait):
                self._wait_for_silence()
        except BaseException:
            os.close(self.descriptor)
            raise
        self._write()
        self._beaten = time.monotonic()

    def beat(self) -> None:
        """Writes that this runner lives, when it is time; `FolderBusy` when another took over."""
        if time.monotonic() - self._beaten < self._beat:
            return
        if self._holder() != self._name:
            raise FolderBusy(self._words())
        self._write()
        self._beaten = time.monotonic()

    def close(self) -> None:
        """Lets go of the folder."""
        os.close(self.descriptor)

    def _lock(self, until: float) -> bool:
        """Whether the file system has locks; returns once it is held."""
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    return False
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
                if time.monotonic() >= until:
                    raise FolderBusy(self._words()) from error
                time.sleep(0.2)
            else:
                return True

    def _wait_for_silence(self) -> None:
        first = self._text()
        until = time.monotonic() + _SILENT_BEATS * self._beat
        while first and time.monotonic() < until:
            time.sleep(self._beat / 2)
            if self._text() != first:
                raise FolderBusy(self._words())

    def _words(self) -> str:
        return (
            f"Another runner ({self._holder() or 'unknown'}) works in {self._path.parent.parent}. "
            "This one leaves it alone; wait for the other's end or cancel it."
        )

    def _text(self) -> str:
        # Opened anew each time: network file systems ask the server for changes then.
        try:
            with self._path.open("rb") as stream:
                return stream.read(1000).decode("utf-8", "replace")
        except OSError:
            return ""

    def _holder(self) -> str:
        return self._text().partition(" ")[0]

    def _write(self) -> None:
        self._count += 1
        # The same file, not a new one in its place: the lock is on the file.
        os.pwrite(self.descriptor, f"{self._name} {self._count}".ljust(200).encode(), 0)
        os.fsync(self.descriptor)
