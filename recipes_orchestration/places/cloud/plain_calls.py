"""Plain calls: a task's requests one by one, a few at a time, each answer written down at once."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import ProviderError, Refused
from ...providers.provider import Call, Provider
from .spool import SpoolPart

__all__ = ["Journal", "PlainTask"]


# A task's answers are in the library long before; only a kill right after that leaves a journal.
KEPT_SECONDS = 90 * 86_400.0


class Journal:
    """The answer lines of a plain task, on this machine until they have landed.

    The first line is a head with the task's remote id, so that a task whose process died before
    its id was written down is found by its name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.jsonl"

    def begin(self, remote_id: str) -> None:
        """Makes the file, whole with its head."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self.path.with_suffix(".beginning")
        temporary.write_bytes(json.dumps({"task": remote_id}).encode() + b"\n")
        temporary.replace(self.path)

    def remote_id(self) -> str | None:
        """The task's remote id; None when there is no such journal."""
        try:
            with self.path.open("rb") as stream:
                head = json.loads(stream.readline(100_000))
        except (FileNotFoundError, ValueError):
            return None
        return str(head["task"])

    def append(self, line: bytes) -> None:
        """Writes a line; when this returns it outlives this process and the machine's power."""
        with self.path.open("ab", buffering=0) as stream:
            stream.write(line + b"\n")
            os.fsync(stream.fileno())

    def lines(self) -> Iterator[bytes]:
        """The lines after the head that were written whole."""
        try:
            with self.path.open("rb") as stream:
                stream.readline()
                for line in stream:
                    if line.endswith(b"\n"):
                        yield line[:-1]
        except FileNotFoundError:
            return

    def remove(self) -> None:
        """Deletes it, once its lines are kept elsewhere."""
        with suppress(FileNotFoundError):
            self.path.unlink()

    @staticmethod
    def sweep(folder: Path) -> None:
        """Deletes the journals that nobody has written to for 90 days."""
        with suppress(OSError):
            for each in os.scandir(folder):
                if time.time() - each.stat().st_mtime > KEPT_SECONDS:
                    Path(each).unlink(missing_ok=True)


@dataclass
class PlainTask:
    """A task of plain calls in threads of this process. `lock` guards what stands below it.

    `took` are the seconds of the calls that were answered, those of the SDK's retries included.
    """

    remote_id: str
    provider: Provider
    part: SpoolPart
    journal: Journal
    parallel: int
    news: threading.Event
    lock: threading.Lock = field(default_factory=threading.Lock)
    ready: list[bytes] = field(default_factory=list[bytes])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    took: dict[str, float] = field(default_factory=dict[str, float])
    left: int = 0
    cancelled: bool = False
    refused: Refused | None = None
    landed_at: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Begins the calls."""
        self.left = len(self.part.bodies)
        thread = threading.Thread(target=self._run, daemon=True, name=f"recipes-{self.remote_id}")
        thread.start()

    @property
    def ended(self) -> bool:
        """Whether no more answers will come."""
        return self.left == 0

    def _run(self) -> None:
        try:
            self._call_all()
        finally:  # whatever happens: who waits for the end must see it
            with self.lock:
                self.left = 0
            self.part.remove()
            self.news.set()

    def _call_all(self) -> None:
        limit = threading.Semaphore(2 * self.parallel)
        with ThreadPoolExecutor(self.parallel, thread_name_prefix="recipes-call") as pool:
            for call_id, call in self.part.each(self.provider.name):
                limit.acquire()
                if self.cancelled or self.refused is not None:
                    break
                future = pool.submit(self._one, call_id, call)
                future.add_done_callback(lambda _: limit.release())

    def _one(self, call_id: str, call: Call) -> None:
        line: bytes | None = None
        seconds = 0.0
        words = ""
        if self.cancelled or self.refused is not None:
            return
        started = time.perf_counter()
        try:
            status, body = self.provider.plain(call)
            seconds = time.perf_counter() - started
            line = self.provider.result_line(call_id, status, body)
            self.journal.append(line)
        except Refused as refused:
            if refused.account:
                self.refused = refused
                return
            words = str(refused)
        except ProviderError as error:
            words = str(error)
        except Exception as error:  # noqa: BLE001  one call must not end the others
            words = f"{type(error).__name__}: {error}"
        with self.lock:
            if line is not None:
                self.ready.append(line)
                self.took[call_id] = seconds
            else:
                self.failed[call_id] = words
            self.left = max(0, self.left - 1)
        self.news.set()
