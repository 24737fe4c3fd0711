"""Jobs of the rehearsed hub as processes of this machine, two at a time."""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from .hub_desk import HUB_TOKEN
from .hub_script import HubScript
from .hub_specs import JobSpec

__all__ = ["MAX_RUNNING", "Job", "JobRuns"]

MAX_RUNNING = 2
MAX_LOG_LINES = 100_000
MAX_LINE_BYTES = 64 * 1024
DEFAULT_TIMEOUT = 30 * 60  # "Jobs have a default timeout (30 minutes)", docs/hub/jobs-configuration
_TICK = 0.02
_UNMOUNTED = "Failed to mount {type} {source}"

# Copies what a volume shows into a folder; False when there is no such repository or path.
Mount = Callable[[str, str, str, str, Path], bool]


@dataclass
class Job:
    """One job and all that happened to it."""

    namespace: str
    spec: JobSpec
    script: HubScript
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    token: str = field(default_factory=lambda: f"hf_job_{secrets.token_hex(12)}")
    stage: str = "SCHEDULING"
    message: str | None = None
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: datetime | None = None
    ended: datetime | None = None
    log: list[tuple[datetime, str]] = field(default_factory=list[tuple[datetime, str]])
    commits: int = 0
    labels: dict[str, str] = field(default_factory=dict[str, str])
    group: int | None = None
    asked: threading.Event = field(default_factory=threading.Event)
    end: tuple[str, str | None] = ("CANCELED", None)


class JobRuns:
    """Runs jobs in the order in which they were created."""

    def __init__(self, mount: Mount) -> None:
        self.endpoint = ""
        self._mount = mount
        self._turn = threading.Condition()
        self._queue: list[Job] = []
        self._running = 0
        self._threads: dict[threading.Thread, Job] = {}

    def start(self, job: Job) -> None:
        """Runs it when its turn comes."""
        thread = threading.Thread(target=self._live, args=(job,), name=f"job-{job.id}", daemon=True)
        with self._turn:
            self._queue.append(job)
            self._threads[thread] = job
        thread.start()

    def end(self, job: Job, stage: str, message: str | None = None, *, hard: bool = False) -> None:
        """Ends it so, unless it has ended: SIGTERM first, or SIGKILL at once when `hard`."""
        with self._turn:
            if job.ended is not None or job.asked.is_set():
                return
            job.end = (stage, message)
            job.asked.set()
            if hard:
                _signal(job, signal.SIGKILL)
            self._turn.notify_all()

    def close(self) -> None:
        """Ends all jobs hard and waits until they are gone."""
        for job in list(self._threads.values()):
            self.end(job, "CANCELED", hard=True)
        for thread in list(self._threads):
            thread.join(10)

    def _live(self, job: Job) -> None:
        try:
            if self._comes_to_run(job):
                try:
                    self._run(job)
                finally:
                    with self._turn:
                        self._running -= 1
                        self._turn.notify_all()
        finally:
            self._threads.pop(threading.current_thread(), None)

    def _comes_to_run(self, job: Job) -> bool:
        script = job.script
        job.asked.wait(None if script.never_starts else script.start_seconds)
        if script.ends_as and not job.asked.is_set():
            job.end = (script.ends_as, script.ends_message or None)
            job.asked.set()
        with self._turn:
            self._turn.wait_for(lambda: job.asked.is_set() or self._is_next(job))
            self._queue.remove(job)
            if job.asked.is_set():
                self._ended(job, *job.end)
                self._turn.notify_all()
                return False
            self._running += 1
            job.started, job.stage = datetime.now(UTC), "RUNNING"
            return True

    def _is_next(self, job: Job) -> bool:
        waiting = (each for each in self._queue if not each.script.never_starts)
        return self._running < MAX_RUNNING and next(waiting, None) is job

    def _run(self, job: Job) -> None:
        with tempfile.TemporaryDirectory(prefix="rehearsal-job-", ignore_cleanup_errors=True) as at:
            folder = Path(at)
            mounts: dict[str, Path] = {}
            for number, volume in enumerate(job.spec.volumes):
                mounted = folder / "volumes" / str(number)
                mounted.mkdir(parents=True)
                revision = volume.revision or "main"
                if not self._mount(
                    volume.type, volume.source, revision, volume.path or "", mounted
                ):
                    words = _UNMOUNTED.format(type=volume.type, source=volume.source)
                    self._ended(job, "ERROR", words)
                    return
                mounts[volume.mount_path.rstrip("/")] = mounted
            self._run_in(job, folder, mounts)

    def _run_in(self, job: Job, folder: Path, mounts: Mapping[str, Path]) -> None:
        for name in ("work", "home", "tmp"):
            (folder / name).mkdir()
        command = [_mounted(each, mounts) for each in (*job.spec.command, *job.spec.arguments)]
        try:
            process = subprocess.Popen(
                command,
                cwd=folder / "work",
                env=self._environment(job, folder, mounts),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            _log(job, f"{command[0]}: {error.strerror}".encode())
            self._ended(job, "ERROR", _failed(127))
            return
        with process:
            with self._turn:
                job.group = process.pid
                if job.asked.is_set():
                    _signal(job, signal.SIGTERM)
            reader = threading.Thread(target=_read, args=(job, process), daemon=True)
            reader.start()
            self._follow(job, process, folder)
            with self._turn:
                # What the command left behind ends with it, as in a container.
                _signal(job, signal.SIGKILL)
                job.group = None
            reader.join(10)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        end = ("COMPLETED", None) if code == 0 else ("ERROR", _failed(code))
        self._ended(job, *(job.end if job.asked.is_set() else end))

    def _follow(self, job: Job, process: subprocess.Popen[bytes], folder: Path) -> None:
        """Waits for the end of the command, and sees to it where it is asked for."""
        out_of_time = time.monotonic() + (job.spec.timeout_seconds or DEFAULT_TIMEOUT)
        while not _gone(process, _TICK):
            script = job.script
            if time.monotonic() > out_of_time:
                self.end(job, "ERROR", "Job timeout")
            if script.kill_when and _written(folder, script.kill_when, script.kill_at_bytes):
                self.end(job, "ERROR", script.kill_message, hard=True)
            if job.asked.is_set():
                _signal(job, signal.SIGTERM)
                if not _gone(process, script.grace_seconds):
                    _signal(job, signal.SIGKILL)
                    process.wait()
                return

    def _environment(self, job: Job, folder: Path, mounts: Mapping[str, Path]) -> dict[str, str]:
        spec = job.spec
        given = {key: _mounted(value, mounts) for key, value in spec.environment.items()}
        # With a token of its own the server knows whose commit it is.
        secret = {
            key: job.token if value == HUB_TOKEN else value for key, value in spec.secrets.items()
        }
        own = {"HF_TOKEN": job.token} if job.script.job_token else {}
        here = str(Path(sys.executable).parent)
        return {
            "PATH": os.pathsep.join([here, os.environ.get("PATH", os.defpath)]),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "HF_ENDPOINT": self.endpoint,
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "JOB_ID": job.id,
            "ACCELERATOR": "",
            "CPU_CORES": "2",
            "MEMORY": "16Gi",
            **own,
            **given,
            **secret,
        }

    def _ended(self, job: Job, stage: str, message: str | None) -> None:
        with self._turn:
            job.stage, job.message, job.ended = stage, message, datetime.now(UTC)


def _read(job: Job, process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError, OSError):
        while line := process.stdout.readline(MAX_LINE_BYTES):
            _log(job, line)


def _log(job: Job, line: bytes) -> None:
    if len(job.log) < MAX_LOG_LINES:
        job.log.append((datetime.now(UTC), line.decode("utf-8", "replace").rstrip("\r\n")))


def _gone(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _signal(job: Job, number: signal.Signals) -> None:
    if job.group is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.group, number)


def _failed(code: int) -> str:
    return f"Job failed with exit code: {code}. Reason: {'Error' if code != 137 else 'Killed'}"


def _written(folder: Path, pattern: str, size: int) -> bool:
    """Whether a file of this pattern, anywhere in the folder, has so many bytes."""
    for file in folder.rglob(pattern):
        with contextlib.suppress(OSError):
            if file.stat().st_size >= size:
                return True
    return False


def _mounted(text: str, mounts: Mapping[str, Path]) -> str:
    """Text with the paths of volumes replaced by where they are on this machine."""
    for path, folder in sorted(mounts.items(), key=lambda each: -len(each[0])):
        text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", lambda _: str(folder), text)  # noqa: B023
    return text


def seconds_between(start: datetime | None, end: datetime | None) -> int | None:
    """Whole seconds as the hub gives them; None when there is no start."""
    if start is None:
        return None
    return math.floor(((end or datetime.now(UTC)) - start).total_seconds())
