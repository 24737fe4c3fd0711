"""A process that runs an archive and, when told to, kills or stops itself at a given call."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from recipes_orchestration.commands.interrupts import stopping_in_order
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.project import load_project
from recipes_orchestration.rehearsal import Rehearsal, Script

from .archive import Archive, environment
from .cloud_archive import BATCH, run_all

STOPPED = 130
PATIENCE = 120.0
"""So long, in seconds, a process is waited for; it tells where it is shortly before."""

_OWNERS = {
    "TaskBook": "ledger.tasks",
    "BookingBook": "ledger.bookings",
    "LeftoverBook": "ledger.leftovers",
    "Library": "library.library",
    "CloudPlace": "places.cloud.cloud_place",
    "SlurmPlace": "places.slurm.slurm_place",
    "Login": "places.slurm.login",
    "HfJobsPlace": "places.hf_jobs.hf_jobs_place",
    "Hub": "places.hf_jobs.hub",
    "Store": "places.hf_jobs.store",
    "Journal": "places.cloud.plain_calls",
    "PlainTasks": "places.cloud.plain_tasks",
    "SpoolPart": "places.cloud.spool",
    "SdkHttp": "providers.sdk_http",
    "GeminiBatches": "providers.gemini_batches",
    "Aws": "providers.bedrock_aws",
}
# Processes are forked from one that has loaded all this: loading an SDK takes seconds.
_LOADED = [
    __name__,
    "anthropic.resources.messages",
    "openai.resources",
    "google.genai",
    "boto3",
    "recipes_orchestration.engine.cloud",
    *(f"recipes_orchestration.{module}" for module in _OWNERS.values()),
]


@dataclass(frozen=True)
class Run:
    """A process at work on the archive."""

    process: ForkServerProcess

    def code(self, seconds: float = PATIENCE) -> int | None:
        """How it ended; negative is a signal, None that it goes on."""
        self.process.join(seconds)
        return self.process.exitcode

    def is_stopped(self) -> bool:
        """Whether it waits for SIGCONT."""
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def signalled(self, number: int) -> int | None:
        """Sends it a signal and tells how it ended."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)
        return self.code()


def start(
    archive: Archive,
    point: str = "",
    *,
    number: int = signal.SIGKILL,
    batch: str = BATCH,
    now: bool = False,
) -> Run:
    """Starts the process.

    `point` is `<class>.<method>:<before, after or during>:<which call>`: there it sends itself the
    signal. `during` is for a method whose last argument is an iterable: at its third element.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    process = context.Process(
        target=_work,
        args=(archive.folder, environment(archive), point, int(number), batch, now),
        daemon=True,
    )
    process.start()
    return Run(process)


def direct(rehearsal: Rehearsal, provider: str, **script: Any) -> None:
    """Says how a provider behaves; Bedrock takes batches of one record."""
    rehearsal.script(provider, Script(min_records=1, **script))


def _arm(point: str, number: int) -> None:
    where, moment, which = point.split(":")
    owner, method = where.split(".")
    kind = getattr(import_module(f"recipes_orchestration.{_OWNERS[owner]}"), owner)
    setattr(kind, method, _deadly(getattr(kind, method), moment, int(which), number))


def _deadly(
    original: Callable[..., Any], moment: str, which: int, number: int
) -> Callable[..., Any]:
    calls = 0

    def deadly(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        due = calls == which
        if due and moment == "before":
            os.kill(os.getpid(), number)
        if due and moment == "during":
            args = (*args[:-1], _ending(args[-1], number))
        answer = original(*args, **named)
        if due and moment == "after":
            os.kill(os.getpid(), number)
        return answer

    return deadly


def _ending(elements: Iterable[Any], number: int) -> Iterator[Any]:
    for place, element in enumerate(elements):
        if place == 2:
            os.kill(os.getpid(), number)
        yield element


def _work(
    folder: Path, variables: Mapping[str, str], point: str, number: int, batch: str, now: bool
) -> None:
    os.environ.clear()
    os.environ.update(variables)
    faulthandler.dump_traceback_later(PATIENCE - 10)
    if point:
        _arm(point, number)
    with (
        stopping_in_order(lambda _: None),
        open_engine(load_project(folder)) as engine,
    ):
        try:
            run_all(engine, batch, now=now)
        except KeyboardInterrupt:
            sys.exit(STOPPED)
