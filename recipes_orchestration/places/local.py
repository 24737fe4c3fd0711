"""The place `local`: steps in a pool of worker processes of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import uuid4

from pebble import ProcessExpired, ProcessPool

from ..errors import PlaceError, RecipesError
from ..runner.measured import Measured, run_measured
from ..runner.run_pages import MANY, Setting
from ..runner.work import Failure, FailureKind, Outcome, PageWork, TaskSpec
from ..steps.registry import load_operation
from .measures import Measures
from .place import Chunk, Package, Report, Sent, Sought, Standing, State
from .processes import process_lives, this_process
from .worker_pool import worker_pool

__all__ = ["LocalPlace"]


@dataclass
class _Task:
    """A task that runs in this process. `lock` guards everything below it."""

    name: str
    setting: Setting
    measures: Measures
    lock: threading.Lock = field(default_factory=threading.Lock)
    futures: set[Future[Measured]] = field(default_factory=set[Future[Measured]])
    ready: list[Outcome] = field(default_factory=list[Outcome])
    pages_ready: int = 0
    pages_left: int = 0
    parts: int = 0
    landed_at: float = field(default_factory=time.monotonic)
    failure: str = ""
    cancelled: bool = False


class LocalPlace:
    """Steps in `workers` processes here, started when the first task comes.

    A task lives in the process that submitted it. Its remote id names that process, so that any
    other process of the machine can tell whether it still lives; from another machine the answer
    is UNKNOWN and the ledger's heartbeat decides. `land_every_pages` and `land_every_seconds`
    say how much may be finished and not landed: what a killed process loses at most.
    """

    name = "local"
    max_open: int | None = None
    settle_seconds = 0.0
    overdue_seconds: float | None = None
    keeps_seconds: float | None = None

    def __init__(
        self,
        *,
        workers: int,
        page_timeout: float = 600.0,
        land_every_pages: int = 25,
        land_every_seconds: float = 30.0,
    ) -> None:
        self._workers = workers
        self._page_timeout = page_timeout
        self._land_every_pages = land_every_pages
        self._land_every_seconds = land_every_seconds
        self._pool: ProcessPool | None = None
        self._tasks: dict[str, _Task] = {}
        self._news = threading.Event()
        # Two places of one process are told apart: each knows its own tasks only.
        self._here = f"{this_process()}/{uuid4().hex[:12]}"

    def takes_slot(self, pages: int, *, now: bool) -> bool:  # noqa: ARG002
        """Never: the pool's workers are the bound."""
        return False

    def pack(self, spec: TaskSpec, *, now: bool = False) -> Iterator[Sequence[Package]]:  # noqa: ARG002
        """All the work as one task."""
        yield [Package(pages=tuple(page.page_id for page in spec.pages), content=spec)]

    def discard(self, package: Package) -> None:
        """Nothing is held by a package."""

    def submit(self, names: Sequence[str], packages: Sequence[Package]) -> Sequence[str]:
        """Hands the tasks' pages to the workers. Raises `PlaceError` when they cannot start."""
        return [
            self._start(name, package.content)
            for name, package in zip(names, packages, strict=True)
        ]

    def _start(self, name: str, task: TaskSpec) -> str:
        setting = Setting(task.steps, task.reader, task.import_path, task.max_pixels)
        running = _Task(name, setting, Measures(_asked(task)), pages_left=len(task.pages))
        remote_id = f"{self._here}/{name}"
        self._tasks[remote_id] = running
        several = any(load_operation(step.run).many is not None for step in task.steps)
        size = MANY if several else 1
        for start in range(0, len(task.pages), size):
            self._schedule(running, task.pages[start : start + size])
        return remote_id

    def find(self, sought: Sought) -> str | None:
        """The task's id when it runs in this process: no other one can be reached from here."""
        return next((id for id, task in self._tasks.items() if task.name == sought.name), None)

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, Standing]:
        """How each task stands; a task of a dead process of this machine is LOST."""
        return {remote_id: self._status(remote_id) for remote_id in remote_ids}

    def results(self, sent: Sent) -> Iterator[Chunk]:
        """One chunk when enough has come, or enough time has passed, or the task has ended."""
        task = self._tasks.get(sent.remote_id)
        if task is None or not self._due(task):
            return
        with task.lock:
            outcomes, pages = list(task.ready), task.pages_ready
        if not outcomes:
            return
        yield Chunk(task.parts + 1, outcomes)
        with task.lock:
            del task.ready[: len(outcomes)]
            task.pages_ready -= pages
            task.parts += 1
            task.landed_at = time.monotonic()

    def cancel(self, remote_id: str) -> None:
        """Pages that have not begun are given up; those in work are ended."""
        task = self._tasks.get(remote_id)
        if task is None:
            return
        with task.lock:
            task.cancelled = True
            futures = list(task.futures)
        for future in futures:
            future.cancel()
        if all(each.cancelled or not each.pages_left for each in self._tasks.values()):
            # The pool has handed its pages out already, and its workers would begin them.
            self._end_workers()

    def bill(self, remote_id: str) -> None:
        """Nothing is billed here."""

    def report(self, remote_id: str) -> Report | None:
        """What the pages took so far, in a task of this process."""
        task = self._tasks.get(remote_id)
        if task is None:
            return None
        with task.lock:
            return Report(task.measures.facts())

    def forget(self, remote_id: str) -> None:
        """Lets go of the task's results, which have landed."""
        self._tasks.pop(remote_id, None)

    def ends_here(self, remote_id: str | None) -> bool:  # noqa: ARG002
        """Always: the workers are children of the process that sent the task."""
        return True

    def wait(self, seconds: float) -> None:
        """Returns when a chunk is due or a task has ended, at the latest after `seconds`."""
        self._news.wait(seconds)
        self._news.clear()

    def close(self) -> None:
        """Ends the workers; what was finished and not landed is lost."""
        self._end_workers()
        self._tasks.clear()

    def _end_workers(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            pool.join()

    def _status(self, remote_id: str) -> Standing:
        task = self._tasks.get(remote_id)
        if task is not None:
            if task.failure:
                return Standing(State.FAILED, task.failure)
            if task.pages_left:
                return Standing(State.RUNNING, f"{task.pages_left} pages left")
            return Standing(State.ENDED)
        if remote_id.rpartition("/")[0] == self._here:
            return Standing(State.LOST, "it was given up here")
        process = remote_id.partition("/")[0]
        lives = process_lives(process)
        if lives is None or process == this_process():
            return Standing(State.UNKNOWN, "it runs where this process cannot look")
        if lives:
            return Standing(State.RUNNING, "in another process")
        return Standing(State.LOST, "its process ended")

    def _due(self, task: _Task) -> bool:
        return (
            task.pages_left == 0
            or bool(task.failure)
            or task.cancelled
            or task.pages_ready >= self._land_every_pages
            or time.monotonic() - task.landed_at >= self._land_every_seconds
        )

    def _schedule(self, task: _Task, pages: Sequence[PageWork]) -> None:
        try:
            future = self._started().schedule(
                run_measured, [task.setting, pages], timeout=self._page_timeout * len(pages)
            )
        except RuntimeError as error:
            raise PlaceError(
                f"The local workers could not take task {task.name}: {error}. "
                f"Run the recipe again; what has landed is kept."
            ) from error
        with task.lock:
            task.futures.add(future)
        future.add_done_callback(partial(self._done, task, pages))

    def _started(self) -> ProcessPool:
        if self._pool is None:
            self._pool = worker_pool(self._workers)
        return self._pool

    def _done(self, task: _Task, pages: Sequence[PageWork], future: Future[Measured]) -> None:
        outcomes: list[Outcome] = []
        try:
            outcomes, loads, memory = future.result()
            with task.lock:
                task.measures.loaded(loads, memory)
        except CancelledError:
            pass
        except RecipesError as error:
            task.failure = str(error)
        except (ProcessExpired, TimeoutError) as error:
            with task.lock:
                task.measures.restarts += 1
            smaller = _narrowed(pages)
            if smaller and self._pool is not None:
                for page in smaller:
                    self._schedule(task, [page])
                with task.lock:
                    task.futures.discard(future)
                return
            outcomes = [_ended_on(pages[0], error, self._page_timeout)]
        except BaseException as error:  # noqa: BLE001  this thread must not end, whatever came
            task.failure = f"The local workers failed: {type(error).__name__}: {error}"
        with task.lock:
            task.futures.discard(future)
            task.ready.extend(outcomes)
            task.measures.add(outcomes)
            task.pages_ready += len(pages)
            task.pages_left -= len(pages)
        if self._due(task):
            self._news.set()


def _asked(spec: TaskSpec) -> dict[str, int]:
    """How many pages are to go through each step."""
    return {step.name: sum(step.name in page.steps for page in spec.pages) for step in spec.steps}


def _narrowed(pages: Sequence[PageWork]) -> list[PageWork]:
    """Work in which the page and the step that ended a worker are told apart, if need be.

    Several pages: each alone. Several steps: the first alone; those behind it are left to do and
    come again with its result landed.
    """
    if len(pages) > 1:
        return list(pages)
    page = pages[0]
    return [replace(page, steps=page.steps[:1])] if len(page.steps) > 1 else []


def _ended_on(page: PageWork, error: BaseException, limit: float) -> Outcome:
    if isinstance(error, TimeoutError):
        failure = Failure(
            FailureKind.TIMEOUT, f"The page took longer than {limit:g} s (limit page_timeout)."
        )
    else:
        failure = Failure(
            FailureKind.DIED,
            "The worker process ended while it worked on this page "
            f"(exit code {getattr(error, 'exitcode', 'unknown')}; often too little memory).",
        )
    return Outcome(page_id=page.page_id, step=page.steps[0], seconds=0.0, failure=failure)
