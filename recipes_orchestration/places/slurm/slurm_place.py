"""The place `slurm`: tasks as elements of job arrays on a cluster, one array a call of `sbatch`."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice
from pathlib import Path

from ...errors import ProviderError, Refused, Unreachable
from ...runner.task_folder import MANIFEST, NEEDS, OUT, OUTCOME, PROGRESS, RESULTS
from ...runner.work import Failure, FailureKind, TaskSpec
from ..place import Chunk, Package, Report, Sent, Sought, Standing, State, array_of
from ..task_folders.batch_folder import own_folder, remove_task
from ..task_folders.far_folders import Over
from ..task_folders.packaging import Packaging, PackedTask, cut, rung_of
from ..task_folders.page_files import sweep_parts
from ..task_folders.returned import Expected, read_returned
from .login import Login, SlurmTask, safe_name
from .queue import Element, Row
from .script import Rung, SlurmRules, time_seconds
from .shell import Shell
from .verdicts import Verdict, left_queue, verdict

__all__ = ["Rung", "SlurmPlace", "SlurmRules"]

MAX_ARRAY = 1000
"""Slurm's own limit on the tasks of an array is 1001 unless the site sets it (MaxArraySize)."""

SHARE_OF_TIME = 0.75


class SlurmPlace:
    """Job arrays of one project on one cluster, asked through its login node.

    A task's remote id is `<job>_<index>/<batch folder>/<array>`, so that any process can say how
    it stands and where it lies. `project` names the folder on scratch; `staging` is where tasks
    are packed here before they are sent, and is not used on the login node itself.
    """

    # A task may wait in the queue for days; its own time limit ends it once it runs.
    overdue_seconds: float | None = None
    # A task is never said to be lost: it runs, or what it wrote can be read.
    keeps_seconds: float | None = 0.0

    def __init__(self, shell: Shell, rules: SlurmRules, *, project: str, staging: Path) -> None:
        self.name = shell.place
        self.max_open: int | None = rules.max_open
        self.settle_seconds = rules.settle_seconds
        self._rules = rules
        self._shell = shell
        self._login = Login(shell, rules, _folder_name(project))
        self._staging = staging
        self._ended: dict[str, Verdict] = {}
        self._found: dict[str, SlurmTask] = {}
        self._reports: dict[str, Report] = {}
        self._closed = threading.Event()

    def takes_slot(self, pages: int, *, now: bool) -> bool:  # noqa: ARG002
        """Always: each array takes one."""
        return True

    def pack(self, spec: TaskSpec, *, now: bool = False) -> Iterator[Sequence[Package]]:  # noqa: ARG002
        """The work cut into tasks; those on one rung of the ladder are one array."""
        rules = self._rules
        batch = _folder_name(spec.folder)
        highest = len(rules.ladder)
        parts = cut(spec, rules.pages_per_task, spec.seconds_per_page, _task_seconds(rules))
        with Packaging(self._here / batch) as packaging:
            for rung, on_rung in groupby(parts, lambda part: min(rung_of(part.pages[0]), highest)):
                while several := list(islice(on_rung, MAX_ARRAY)):
                    yield from _groups(packaging, batch, rung, several)

    def discard(self, package: Package) -> None:
        """Nothing is held by a package: its files are there for the next one."""

    def submit(self, names: Sequence[str], packages: Sequence[Package]) -> Sequence[str]:
        """Sends what is not there yet, then the array. Raises as `Place.submit` does."""
        array, _ = array_of(names[0])
        if not safe_name(array):
            raise Refused(f"{self.name}: {array!r} cannot be the name of a job. Rename its steps.")
        batch = str(packages[0].group["batch"])
        indexes = [array_of(name)[1] for name in names]
        files: dict[str, None] = {}
        for name, package in zip(names, packages, strict=True):
            packaging: Packaging
            packed: PackedTask
            packaging, packed = package.content
            folder = packaging.write(name, packed)
            for file in (MANIFEST, NEEDS):
                if (folder / file).is_file():
                    files[(folder / file).relative_to(packaging.folder).as_posix()] = None
            files.update(dict.fromkeys(packed.files))
        self._found.pop(array, None)
        try:
            # The array's folder comes first: while it is there, nobody removes the pages.
            self._login.make_folders(batch, array, indexes)
            self._shell.put(self._here / batch, f"{self._login.root}/{batch}", list(files))
        except (Refused, Unreachable):
            raise
        except ProviderError as error:  # nothing was asked of Slurm yet
            raise Unreachable(str(error)) from error
        rung = int(packages[0].group["rung"])
        job = self._login.submit(batch, array, indexes, rung)
        return [SlurmTask(job, index, batch, array).remote_id for index in indexes]

    def find(self, sought: Sought) -> str | None:
        """The remote id of the task of that name: its array is found by the name of its job."""
        array, index = array_of(sought.name)
        if not safe_name(array):
            return None
        if array not in self._found:
            task = self._login.find(array)
            if task is None:
                return None
            self._found[array] = task
        found = self._found[array]
        return SlurmTask(found.job, index, found.batch, array).remote_id

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, Standing]:
        """How each task stands, by one look at the queue and one at what has left it."""
        verdicts = {each: self._ended[each] for each in remote_ids if each in self._ended}
        asked: dict[str, SlurmTask] = {}
        for remote_id in remote_ids:
            if remote_id not in verdicts:
                try:
                    asked[remote_id] = SlurmTask.of(remote_id)
                except ProviderError as error:
                    verdicts[remote_id] = Verdict(State.UNKNOWN, str(error))
        if asked:
            verdicts |= self._look(asked)
        return {remote_id: each.standing for remote_id, each in verdicts.items()}

    def results(self, sent: Sent) -> Iterator[Chunk]:
        """What an ended task wrote, and an outcome for each page that it did not come to.

        Of one that failed as a whole only what it wrote: no page is to blame for the rest.
        """
        task = SlurmTask.of(sent.remote_id)
        if sent.remote_id not in self._ended:
            self.statuses([sent.remote_id])
        how = self._ended.get(sent.remote_id)
        if how is None:
            return
        if self._shell.here:
            yield from self._written(sent, task, how, self._folder_here(task))
            return
        with own_folder(self._staging) as folder:
            yield from self._written(sent, task, how, folder)

    def _written(self, sent: Sent, task: SlurmTask, how: Verdict, folder: Path) -> Iterator[Chunk]:
        there = f"{self._login.array_folder(task)}/{task.index}"
        self._shell.get(there, folder, [f"{OUT}/{each}" for each in (RESULTS, PROGRESS, OUTCOME)])
        returned = read_returned(folder / OUT, Expected.of_spec(sent.name, sent.spec))
        kind = FailureKind.STOPPED if sent.stopped else how.kind
        words = f"Task {task.job}_{task.index} at {self.name}: {how.words}"
        rest = () if how.state is State.FAILED else returned.unwritten(Failure(kind, words))
        for part, several in enumerate(chain(returned.chunks(), rest), 1):
            yield Chunk(part, several)
        self._reports[sent.remote_id] = returned.report()

    def bill(self, remote_id: str) -> None:
        """Nothing is billed."""

    def report(self, remote_id: str) -> Report | None:
        """What the runner told, once its results were read."""
        return self._reports.get(remote_id)

    def check(self) -> str:
        """What Slurm says of itself, and of an array as the settings would have it; none is sent.

        Raises `Refused` when it would not take one, `Unreachable` when it does not answer.
        """
        return self._login.check()

    def cancel(self, remote_id: str) -> None:
        """Asks Slurm to end the task; what it wrote can still be fetched."""
        self._login.cancel(SlurmTask.of(remote_id))

    def forget(self, remote_id: str) -> None:
        """Lets go of what is known of the task; its folders are removed by `clear`."""
        self._ended.pop(remote_id, None)
        self._reports.pop(remote_id, None)

    def clear(self, tasks: Sequence[Over]) -> Iterator[str]:
        """Removes the tasks' folders here and there, and what no other task needs any more."""
        several = {task.name: (str(task.group["batch"]), *array_of(task.name)) for task in tasks}
        for name, (batch, array, _) in list(several.items()):
            if not (safe_name(batch) and safe_name(array)):  # then nothing was ever sent
                del several[name]
                yield name
        for batch, array, index in several.values():
            if self._shell.here:
                with suppress(OSError):
                    sweep_parts(self._here / batch)
            else:
                remove_task(self._staging / batch, f"{array}/{index}")
        names = list(several)
        yield from (names[number] for number in self._login.clear(list(several.values())))

    def ends_here(self, remote_id: str | None) -> bool:  # noqa: ARG002
        """Never: an array runs whoever sent it."""
        return False

    def wait(self, seconds: float) -> None:
        """Waits: Slurm tells nothing by itself."""
        self._closed.wait(seconds)

    def close(self) -> None:
        """Ends `wait`. A shared connection stays open: it is the user's."""
        self._closed.set()

    @property
    def _here(self) -> Path:
        """Where tasks are packed: on the login node where its nodes see them."""
        return Path(self._login.root) if self._shell.here else self._staging

    def _folder_here(self, task: SlurmTask) -> Path:
        return self._here / task.batch / task.array / str(task.index)

    def _look(self, asked: Mapping[str, SlurmTask]) -> dict[str, Verdict]:
        names = {task.array for task in asked.values()}
        queue = self._login.queue(names)
        left = [task for task in asked.values() if left_queue(_row(queue, task))]
        traces = self._login.traces(left) if left else {}
        # The accounts are asked about those alone whose end nothing else tells.
        untold = {
            task.array
            for task in left
            if _row(queue, task) is None and ((mark := traces[task].exit) is None or mark.code != 0)
        }
        accounts = self._login.accounts(untold) if untold else {}
        verdicts: dict[str, Verdict] = {}
        for remote_id, task in asked.items():
            verdicts[remote_id] = verdict(
                _row(queue, task),
                traces.get(task),
                _row(accounts, task),
                self._rules.settle_seconds,
            )
            if verdicts[remote_id].state in (State.ENDED, State.FAILED):
                self._ended[remote_id] = verdicts[remote_id]
        return verdicts


def _task_seconds(rules: SlurmRules) -> float:
    """How long a task is to take: well within its time limit, as pages differ."""
    wanted = rules.task_minutes * 60
    limit = 0 if rules.time is None else time_seconds(rules.time)
    return min(wanted, limit * SHARE_OF_TIME) if limit else wanted


def _row(rows: Mapping[Element, Row], task: SlurmTask) -> Row | None:
    """The task's row. A controller that was killed gives ids again: the name must be right too."""
    row = rows.get(task.element)
    return row if row is not None and row.name == task.array else None


def _groups(
    packaging: Packaging, batch: str, rung: int, parts: Iterable[TaskSpec]
) -> Iterator[Sequence[Package]]:
    """The array of these parts, then what needs no task of it."""
    array: list[Package] = []
    decided: list[Package] = []
    for part in parts:
        packed = packaging.pack(part)
        package = Package(
            pages=packed.page_ids,
            decided=packed.decided,
            calls=packed.calls,
            slot=bool(packed.page_ids),
            group={"batch": batch, "rung": rung, "pages": len(packed.pages)},
            content=(packaging, packed),
        )
        (array if package.pages else decided).append(package)
    if array:
        yield array
    for package in decided:
        yield [package]


def _folder_name(text: str) -> str:
    """A name of one folder for a path or a name; different ones give different names."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[-80:].lstrip("-._") or "x"
    if plain == text:
        return plain
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
