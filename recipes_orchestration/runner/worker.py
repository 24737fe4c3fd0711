"""The process that runs a task's steps, one step after another over all pages.

It is started by the runner and tells it through a pipe what it is at, so that the runner knows
which page is to blame when this process dies or hangs. A line of JSON each:

    {"load": step, "pages": n}           so many pages are to do; its model is loaded first
    {"loaded": step, "seconds": n}       it is there
    {"at": [page, ...], "step": step}    these pages are in work
    {"done": page, "step": step, "failed": words or null}   its result is written
    {"over": step}                       no page is left for it
    {"refused": words}                   the task as a whole cannot be done
    {"end": true}
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PlaceError, RecipesError, StepError
from ..recipe import Step
from ..steps.extras import missing
from ..steps.seen import seen_page
from .far_pages import FarPages, SentValues
from .journal import Journal
from .models import Models
from .run_pages import MANY, operation_of, run_step
from .task_folder import OUT, RESULTS, WORK, Manifest, ManifestPage, read_manifest, runner_version
from .work import Outcome

__all__ = ["ALONE", "REFUSED", "check_task", "main"]

ALONE = "alone.json"
"""In `WORK`: pages of groups that ended a worker, by step."""

REFUSED = 3
"""The exit code of a task that cannot be done, whatever its pages are."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass
class _Telling:
    """The pipe to the runner."""

    descriptor: int

    def say(self, **words: Any) -> None:
        """One line, in one piece."""
        left = memoryview(json.dumps(words).encode() + b"\n")
        while left:
            left = left[os.write(self.descriptor, left) :]


def main(arguments: Sequence[str]) -> int:
    """`worker FOLDER PIPE LIFE`: `PIPE` is where it tells, `LIFE` a pipe that ends with the runner.

    The file `ALONE` names the pages that are run one at a time, by step.
    """
    folder = Path(arguments[0])
    alone = json.loads((folder / WORK / ALONE).read_bytes())
    telling = _Telling(int(arguments[1]))
    _mind_the_runner(int(arguments[2]))
    try:
        _run(folder, telling, alone)
    except RecipesError as error:
        telling.say(refused=str(error))
        return REFUSED
    telling.say(end=True)
    return 0


def check_task(folder: Path, manifest: Manifest) -> None:
    """Raises `StepError` or `PlaceError` when this installation cannot do what was sent.

    Every step must be there in the version that the recipe was planned with: its results land
    under keys that say so.
    """
    if manifest.runner != runner_version():
        raise PlaceError(
            f"The task was sent by recipes-orchestration {manifest.runner} and here is "
            f"{runner_version()}. Install the same on both sides: "
            f"pip install 'recipes-orchestration[runner]=={manifest.runner}'."
        )
    if manifest.code is not None and not (folder / manifest.code).is_dir():
        raise PlaceError(f"The folder {manifest.code} with the project's steps did not come along.")
    for step in manifest.steps:
        operation = operation_of(step)
        if operation.version != step.version:
            raise StepError(
                f"The step '{step.name}' was planned with version {step.version} of '{step.run}' "
                f"and here is {operation.version}. Install the same packages on both sides."
            )
        lacking = missing(operation)
        if lacking is not None:
            raise StepError(f"{lacking} That is on the far side, where the task runs.")
        if operation.check is not None:
            operation.check(step.params)


def _run(folder: Path, telling: _Telling, alone: Mapping[str, Sequence[str]]) -> None:
    manifest = read_manifest(folder)
    if manifest.code is not None:
        sys.path.insert(0, str((folder / manifest.code).resolve()))
    check_task(folder, manifest)
    models = Models(lambda step, seconds: telling.say(loaded=step, seconds=round(seconds, 3)))
    with Journal(folder / OUT / RESULTS) as journal:
        task = _Task(manifest, FarPages(folder, manifest), SentValues(folder, manifest), journal)
        for step in manifest.steps:
            ready = task.ready(step)
            if ready:
                telling.say(load=step.name, pages=len(ready))
                models.of(step, operation_of(step))
                for pages in _together(step, ready, set(alone.get(step.name, ()))):
                    telling.say(at=[page.page_id for page in pages], step=step.name)
                    for outcome in task.outcomes(step, pages, models):
                        journal.append(outcome)
                        failed = None if outcome.failure is None else outcome.failure.words
                        telling.say(done=outcome.page_id, step=step.name, failed=failed)
                models.release()
            telling.say(over=step.name)


@dataclass(frozen=True)
class _Task:
    manifest: Manifest
    pages: FarPages
    sent: SentValues
    journal: Journal

    def ready(self, step: Step) -> list[ManifestPage]:
        """The pages that the step is still to be run on: what it needs is there."""
        return [
            page
            for page in self.manifest.pages
            if step.name in page.steps
            and not self.journal.written(page.page_id, step.name)
            and all(self._has(page.page_id, need) for need in step.needs)
        ]

    def outcomes(
        self, step: Step, pages: Sequence[ManifestPage], models: Models
    ) -> Iterator[Outcome]:
        """What the step gives on the pages, each as soon as it is there."""
        seen = [
            # One that was made for its steps has been made the picture that they want.
            seen_page(self.pages.page(page), None if page.encoded else step.image)
            for page in pages
        ]
        needs = [{need: self._value(page.page_id, need) for need in step.needs} for page in pages]
        yield from run_step(step, seen, needs, models)

    def _has(self, page_id: str, step: str) -> bool:
        return self.journal.landed(page_id, step) or self.sent.has(page_id, step)

    def _value(self, page_id: str, step: str) -> Any:
        if self.journal.landed(page_id, step):
            return self.journal.value(page_id, step)
        return self.sent.value(page_id, step)


def _together(
    step: Step, pages: Sequence[ManifestPage], alone: set[str]
) -> Iterator[list[ManifestPage]]:
    """The pages in the groups in which the operation takes them; `alone` each by itself."""
    size = 1 if operation_of(step).many is None else MANY
    group: list[ManifestPage] = []
    for page in pages:
        if page.page_id in alone:
            yield [page]
            continue
        group.append(page)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _mind_the_runner(life: int) -> None:
    """Ends this process when the runner is gone; what a step prints goes to standard error.

    Signals that ask for an end reach the whole group: the runner alone acts on them.
    """
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A handler, not SIG_IGN: programs that a step starts would inherit that.
        signal.signal(each, _pass_over)
    os.dup2(2, 1)
    _end_with_parent()
    threads = os.environ.get("SLURM_CPUS_PER_TASK") or str(_cores())
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, threads)
    threading.Thread(
        target=_end_with_runner, args=[life], daemon=True, name="end-with-runner"
    ).start()


def _pass_over(number: int, frame: object) -> None:
    del number, frame


def _end_with_runner(life: int) -> None:
    while os.read(life, 1):
        pass
    os._exit(1)


def _end_with_parent() -> None:
    """Asks Linux to kill this process when the runner ends, even in the midst of foreign code."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS does not say which cores a process may use
        return os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
