"""Keeps a worker at a task's pages: what ends a worker costs the page it was at, not the task."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .folder_lock import FolderLock
from .journal import Journal
from .memory_kills import MemoryKills
from .progress import Progress
from .task_folder import OUT, RESULTS, WORK, Manifest, write_whole
from .work import Failure, FailureKind, Outcome
from .worker import ALONE

__all__ = ["Loads", "Stopped", "Supervisor"]

_LOOK_SECONDS = 0.25
# A worker that dies before it is at a page is started so often in all.
_STARTS = 3
# So many pages one after another, none of which landed, are the machine's fault.
_DEATHS_IN_A_ROW = 20


class Stopped(Exception):
    """A signal asked for the end of the runner."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclass
class Loads:
    """How often a step's model was loaded, and the seconds that took."""

    count: int = 0
    seconds: float = 0.0


@dataclass
class _Seen:
    """What a worker told of itself. `since` is when it began what it is at."""

    at: list[str] = field(default_factory=list[str])
    step: str = ""
    loading: bool = False
    since: float = field(default_factory=time.monotonic)
    ended: bool = False
    refused: str | None = None


class Supervisor:
    """Runs a task with one worker after another until all that can be done is done."""

    def __init__(
        self, folder: Path, manifest: Manifest, progress: Progress, lock: FolderLock
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._progress = progress
        self._lock = lock
        self._alone: dict[str, list[str]] = {}
        self._deaths = 0
        self._early = 0
        self._signal: int | None = None
        self._kills = MemoryKills()
        self.loads: dict[str, Loads] = {}
        self.restarts = 0

    def stop(self, number: int) -> None:
        """Asks for the end: the worker is ended and `run` raises `Stopped`. For signal handlers."""
        self._signal = number

    def run(self) -> str | None:
        """None when all was done that can be, else why the task as a whole cannot be done.

        Raises `Stopped`, and `FolderBusy` when another runner took the folder over.
        """
        while True:
            seen, ending = self._watch_one()
            if seen.refused is not None:
                return seen.refused
            if seen.ended:
                return None
            failure = self._after_death(seen, ending)
            if failure is not None:
                return failure
            self.restarts += 1

    def _after_death(self, seen: _Seen, ending: Failure) -> str | None:
        """Writes whose fault it was, if one page's; a failure when there is no use in going on."""
        if len(seen.at) > 1:
            # Which of them it was is found out by running each alone.
            self._alone.setdefault(seen.step, []).extend(seen.at)
            return None
        if not seen.at:
            self._early += 1
            what = f"loaded the model of '{seen.step}'" if seen.loading else "was at no page"
            return (
                f"The worker process ended {_STARTS} times while it {what}; {ending.words}"
                if self._early >= _STARTS
                else None
            )
        with Journal(self._folder / OUT / RESULTS) as journal:
            if not journal.written(seen.at[0], seen.step):
                seconds = time.monotonic() - seen.since
                journal.append(Outcome(seen.at[0], seen.step, seconds, failure=ending))
                self._progress.page_ended(seen.step, seen.at[0], ending.words)
                self._deaths += 1
        if self._deaths < _DEATHS_IN_A_ROW:
            return None
        return (
            f"{_DEATHS_IN_A_ROW} pages one after another ended the worker or took too long, so it "
            f"is this machine and not the pages; the last time: {ending.words}"
        )

    def _watch_one(self) -> tuple[_Seen, Failure]:
        """Starts a worker and follows it to its end; what it told, and how it ended."""
        heard, tell = os.pipe()
        life, alive = os.pipe()
        os.set_blocking(heard, False)
        try:
            try:
                worker = self._start(tell, life)
            finally:
                os.close(tell)
                os.close(life)
            try:
                return self._follow(worker, heard)
            finally:
                _end(worker)
        finally:
            os.close(heard)
            os.close(alive)

    def _start(self, tell: int, life: int) -> subprocess.Popen[bytes]:
        write_whole(self._folder / WORK / ALONE, json.dumps(self._alone).encode())
        # -P: the folder that the runner was started in must not lend modules to the worker.
        command = [sys.executable, "-P", "-m", "recipes_orchestration.runner.worker"]
        return subprocess.Popen(
            [*command, str(self._folder), str(tell), str(life)],
            stdin=subprocess.DEVNULL,
            # The lock is the worker's too: a worker that outlives its runner keeps others out.
            pass_fds=(tell, life, self._lock.descriptor),
            start_new_session=True,
        )

    def _follow(self, worker: subprocess.Popen[bytes], heard: int) -> tuple[_Seen, Failure]:
        seen, hear = _Seen(), _Hearing(heard)
        while True:
            hear.wait(_LOOK_SECONDS)
            code = worker.poll()
            for told in hear.lines():
                self._note(seen, told)
            if code is not None:
                return seen, _death(code, memory=self._kills.happened())
            if self._signal is not None:
                raise Stopped(self._signal)
            limit = self._manifest.page_timeout
            if seen.at and time.monotonic() - seen.since > limit * len(seen.at):
                _end(worker)
                for told in hear.lines():
                    self._note(seen, told)
                return seen, Failure(
                    FailureKind.TIMEOUT,
                    f"The page took longer than {limit:g} s (limit page_timeout).",
                )
            self._lock.beat()

    def _note(self, seen: _Seen, told: dict[str, Any]) -> None:
        match told:
            case {"load": str(step), "pages": int(pages)}:
                seen.step, seen.loading = step, True
                self._progress.step_begins(step, pages)
            case {"loaded": str(step), "seconds": float() | int() as seconds}:
                loads = self.loads.setdefault(step, Loads())
                loads.count += 1
                loads.seconds += seconds
                self._progress.say(
                    f"{step}: model loaded in {seconds:.1f} s", step=step, load_seconds=seconds
                )
            case {"at": list(pages), "step": str(step)}:
                seen.at, seen.step, seen.loading = [*pages], step, False
                seen.since = time.monotonic()
            case {"done": str(page), "step": str(step), "failed": failed}:
                seen.at = [each for each in seen.at if each != page]
                seen.since = time.monotonic()
                if failed is None:
                    self._deaths = self._early = 0
                self._progress.page_ended(step, page, failed)
            case {"refused": str(words)}:
                seen.refused = words
            case {"end": True}:
                seen.ended = True
            case _:
                pass


class _Hearing:
    """Lines of JSON out of a pipe, as far as they have come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._open = True

    def wait(self, seconds: float) -> None:
        """Returns when there is something to hear, at the latest after the seconds."""
        if self._open:
            select.select([self._descriptor], [], [], seconds)
        else:
            time.sleep(seconds / 10)

    def lines(self) -> list[dict[str, Any]]:
        """What came since the last time."""
        while self._open:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                break
            self._open = bool(data)
            self._rest += data
        *whole, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in whole]


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Ends the worker and what it started. Its results are written as they are done."""
    kill: Callable[[int, int], None] = os.killpg
    # The group is the worker's own, and goes on to live when the worker alone has died.
    with suppress(ProcessLookupError, PermissionError):
        kill(worker.pid, signal.SIGKILL)
    worker.wait()


def _death(code: int, *, memory: bool) -> Failure:
    if memory and code == -signal.SIGKILL:
        return Failure(
            FailureKind.MEMORY,
            "The worker process was killed while it worked on this page: "
            "it needed more memory than its job may have.",
        )
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Failure(
        FailureKind.DIED,
        f"The worker process ended while it worked on this page ({how}; often too little memory).",
    )
