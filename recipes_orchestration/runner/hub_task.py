"""A task on Hugging Face Jobs: fetched to a disk of the machine, run there, put back as it goes.

    python3 -m recipes_orchestration.runner.hub_task --task ARRAY/INDEX
        (--mount FOLDER | --dataset OWNER/NAME --folder BATCH_FOLDER)
        [--runner recipes-runner] [--every SECONDS] [--stop-after SECONDS]

What the runner has written is put back every `--every` seconds and at the end, so that a job that
is killed loses no more than that. A job has a time limit of which it is not warned, so the runner
is ended `--stop-after` seconds from the start, and `ENDED` beside the results says so.

Ends with the runner's own exit code; 4: the task could not be fetched; 5: its results could not be
put back.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import PlaceError
from .hub_files import FarFiles, FilesLost, Mounted, Repository
from .task_folder import MANIFEST, NEEDS, OUT, OUTCOME, PROGRESS, RESULTS, read_manifest

__all__ = ["ENDED", "NOT_FETCHED", "NOT_PUT_BACK", "TIME_IS_OVER", "main"]

ENDED = "ended.json"
"""In `OUT`: why the runner was ended before it was done, as `{"why": TIME_IS_OVER}`."""
TIME_IS_OVER = "time"

NOT_FETCHED, NOT_PUT_BACK = 4, 5

# In the order in which they are put back: the outcome says that the others are there.
_WRITTEN = (RESULTS, PROGRESS, ENDED, OUTCOME)
# So long the runner has to write its outcome when it is ended, in seconds.
_LAST_WORDS = 20.0


@dataclass
class _Run:
    """The task in its folder here; `work` stands for the batch folder."""

    files: FarFiles
    work: Path
    task: str
    _put: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def folder(self) -> Path:
        """The task folder."""
        return self.work / self.task

    def fetch(self) -> None:
        """The task, what an earlier run of it wrote, its pages and its code."""
        own = [f"{self.task}/{name}" for name in (MANIFEST, NEEDS)]
        own += [f"{self.task}/{OUT}/{name}" for name in (RESULTS, PROGRESS)]
        there = set(self.files.below(self.task))
        self.files.get([name for name in own if name in there], self.work)
        manifest = read_manifest(self.folder)
        files = {self._inside(page.file) for page in manifest.pages}
        if manifest.code is not None:
            files.update(self.files.below(self._inside(manifest.code)))
        self.files.get(sorted(files), self.work)
        (self.folder / OUT).mkdir(exist_ok=True)

    def put_back(self) -> None:
        """What was written since the last time, as it is at this moment."""
        back = self.work / ".back"
        changed: list[str] = []
        for name in _WRITTEN:
            file = f"{self.task}/{OUT}/{name}"
            try:
                status = (self.work / file).stat()
            except OSError:
                continue
            if self._put.get(file) == (status.st_size, status.st_mtime_ns):
                continue
            (back / file).parent.mkdir(parents=True, exist_ok=True)
            # A copy, as the journal grows while it is sent.
            shutil.copyfile(self.work / file, back / file)
            self._put[file] = (status.st_size, status.st_mtime_ns)
            changed.append(file)
        if not changed:
            return
        try:
            self.files.put(changed, back)
        except FilesLost:
            self._put.clear()
            raise

    def _inside(self, path: str) -> str:
        """A path from the task folder as one from the batch folder."""
        return posixpath.normpath(posixpath.join(self.task, path))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the task; gives the exit code."""
    given = _arguments(arguments)
    started = time.monotonic()
    with TemporaryDirectory(prefix="recipes-", ignore_cleanup_errors=True) as work:
        try:
            run = _Run(_files(given), Path(work), given.task)
            run.fetch()
        except (FilesLost, PlaceError, ImportError) as error:
            _say(f"The task could not be fetched: {error}")
            return NOT_FETCHED
        stop_at = None if given.stop_after is None else started + given.stop_after
        return _carry_out(run, shlex.split(given.runner), given.every, stop_at)


def _carry_out(run: _Run, runner: Sequence[str], every: float, stop_at: float | None) -> int:
    try:
        process = subprocess.Popen([*runner, str(run.folder)])
    except OSError as error:
        _say(f"The runner {runner[0]} could not be started: {error.strerror}")
        return 127
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    signal.signal(signal.SIGINT, lambda *_: process.terminate())
    while not _ended(process, every, stop_at):
        if stop_at is not None and time.monotonic() >= stop_at:
            process.terminate()
            (run.folder / OUT / ENDED).write_text(json.dumps({"why": TIME_IS_OVER}))
            break
        try:
            run.put_back()
        except (FilesLost, OSError) as error:
            _say(f"Results could not be put back and are tried again: {error}")
    code = _end(process)
    try:
        run.put_back()
    except (FilesLost, OSError) as error:
        _say(f"The results could not be put back: {error}")
        return NOT_PUT_BACK
    return code if code >= 0 else 128 - code


def _ended(process: subprocess.Popen[bytes], every: float, stop_at: float | None) -> bool:
    """Waits for the runner's end, or until it is time to put back or to stop."""
    left = every if stop_at is None else min(every, stop_at - time.monotonic())
    try:
        process.wait(max(0.0, left))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_LAST_WORDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _files(given: argparse.Namespace) -> FarFiles:
    if given.mount is not None:
        return Mounted(Path(given.mount))
    return Repository(given.dataset, given.folder)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hub_task", description="Runs a task on a job.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--mount", help="the batch folder, where it is mounted")
    where.add_argument("--dataset", help="the repository that has the batch folder")
    parser.add_argument("--folder", default="", help="the batch folder in the repository")
    parser.add_argument("--task", required=True, help="the task's folder in the batch folder")
    parser.add_argument("--runner", default="recipes-runner", help="the runner's command")
    parser.add_argument("--every", type=float, default=600.0, help="seconds between put-backs")
    parser.add_argument("--stop-after", type=float, help="seconds until the runner is ended")
    given = parser.parse_args(arguments)
    if {"", ".", ".."} & set(given.task.split("/")):
        parser.error("--task leads out of the batch folder")
    return given


def _say(words: str) -> None:
    sys.stderr.write(f"recipes: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
