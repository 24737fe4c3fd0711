"""`recipes-runner FOLDER`: does the task of a folder and leaves its results and its outcome there.

Exit codes: 0 all was done that can be, failed pages are in the results; 3 the task as a whole
cannot be done, the outcome says why; 75 another runner works in the folder; 143 and 130 ended by
SIGTERM and SIGINT, what is written is kept. A runner that left no outcome died.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..errors import RecipesError
from .folder_lock import FolderBusy, FolderLock
from .outcome import is_complete, outcome_of, write_outcome
from .progress import Progress
from .supervisor import Loads, Stopped, Supervisor
from .task_folder import OUT, PROGRESS, Manifest, read_manifest, runner_version
from .worker import REFUSED

__all__ = ["BUSY", "main", "run_folder"]

BUSY = 75
"""The exit code when another runner works in the folder: EX_TEMPFAIL of sysexits.h."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    parser = argparse.ArgumentParser(
        prog="recipes-runner", description="Runs the task of a task folder."
    )
    parser.add_argument("folder", type=Path, help="the task folder: it holds manifest.json")
    parser.add_argument(
        "--wait", type=float, default=60.0, metavar="SECONDS", help="for another runner to end"
    )
    parser.add_argument("--version", action="version", version=runner_version())
    given = parser.parse_args(arguments)
    sys.exit(run_folder(given.folder.resolve(), wait=given.wait))


def run_folder(folder: Path, *, wait: float = 60.0) -> int:
    """Does the folder's task; the exit code. What went wrong is said on standard error too."""
    try:
        lock = FolderLock(folder, wait=wait)
    except FolderBusy as error:
        return _said(str(error), BUSY)
    except OSError as error:
        return _said(f"The task folder {folder} cannot be used: {error.strerror}.", REFUSED)
    try:
        if is_complete(folder):
            return 0
        for each in (folder / OUT).glob(".*"):
            # Left half-written by a runner that was killed.
            each.unlink(missing_ok=True)
        return _Run(folder).run(lock)
    except FolderBusy as error:
        return _said(str(error), BUSY)
    except OSError as error:
        return _said(f"The outcome of {folder} cannot be written: {error.strerror}.", REFUSED)
    finally:
        lock.close()


class _Run:
    """One run of the task of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = datetime.now(UTC)
        self._manifest: Manifest | None = None
        self._supervisor: Supervisor | None = None
        self._progress: Progress | None = None

    def run(self, lock: FolderLock) -> int:
        """Does the task and writes its outcome; signals end the one and not the other."""
        before = {each: signal.signal(each, self._stop) for each in _SIGNALS}
        try:
            return self._run(lock)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _run(self, lock: FolderLock) -> int:
        try:
            failure = self._work(lock)
        except FolderBusy:
            raise
        except Stopped as stopped:
            words = f"The runner was ended by {stopped}."
            return self._leave(128 + stopped.number, failure=None, words=words)
        except (RecipesError, OSError) as error:
            failure = str(error)
        return self._leave(0 if failure is None else REFUSED, failure=failure, words=failure)

    def _work(self, lock: FolderLock) -> str | None:
        manifest = self._manifest = read_manifest(self._folder)
        self._progress = Progress(self._folder / OUT / PROGRESS, manifest.task)
        self._supervisor = Supervisor(self._folder, manifest, self._progress, lock)
        self._progress.say(
            f"{manifest.task} started on {socket.gethostname()}: {len(manifest.pages)} pages, "
            f"steps {', '.join(step.name for step in manifest.steps)}",
            host=socket.gethostname(),
            pages=len(manifest.pages),
            version=runner_version(),
        )
        return self._supervisor.run()

    def _stop(self, number: int, frame: object) -> None:
        del frame
        if self._supervisor is not None:
            self._supervisor.stop(number)

    def _leave(self, code: int, *, failure: str | None, words: str | None) -> int:
        supervisor = self._supervisor
        loads: Mapping[str, Loads] = {} if supervisor is None else supervisor.loads
        outcome = outcome_of(
            self._folder,
            self._manifest,
            complete=code == 0,
            failure=failure,
            started=self._started,
            ended=datetime.now(UTC),
            loads=loads,
            restarts=0 if supervisor is None else supervisor.restarts,
        )
        if self._progress is not None:
            steps = {
                each["name"]: {key: each[key] for key in ("landed", "failed", "left")}
                for each in outcome["steps"]
            }
            self._progress.say(
                "; ".join(
                    f"{name}: {each['landed']} landed, {each['failed']} failed, {each['left']} left"
                    for name, each in steps.items()
                ),
                steps=steps,
            )
            self._progress.close(words)
        write_outcome(self._folder, outcome)
        return code if words is None else _said(words, code)


def _said(words: str, code: int) -> int:
    print(f"recipes-runner: {words}", file=sys.stderr)  # noqa: T201  a job's log is its only voice
    return code


if __name__ == "__main__":
    main()
