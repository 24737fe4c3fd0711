"""What is asked of a cluster through its login node, each by one call of its shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...errors import ProviderError, Refused, Unreachable
from ...still_ours import still_ours
from .clearing import clear_command, clear_input, cleared
from .commands import (
    NO_FOLDER,
    NO_ROOM,
    Traces,
    accounting_command,
    cancel_command,
    find_command,
    folders_command,
    login_command,
    queue_command,
    submit_command,
    traces_command,
    traces_input,
    traces_of,
)
from .queue import Element, Row, accounting_rows, queue_rows
from .refusals import job_of, submit_error
from .script import SlurmRules, batch_script, mark_of, sbatch_argv
from .shell import Done, Shell

__all__ = ["Login", "SlurmTask", "safe_name"]

ASK_SECONDS = 90.0
SUBMIT_SECONDS = 120.0
TRACES_SECONDS = 300.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,254}")
_TASK = re.compile(r"(\d{1,18})_(\d{1,9})/([^/]+)/([^/]+)")
_ABSOLUTE = re.compile(r"/[^\x00-\x1f\x7f%]*")
# An element is known by these words when there are no accounts to be asked (slurm_errno.c).
_NO_ACCOUNTS = re.compile(r"accounting storage is disabled|sacct: .*not found", re.IGNORECASE)
_OVER_ALREADY = re.compile(r"invalid job id|already completing|already completed", re.IGNORECASE)


@dataclass(frozen=True)
class SlurmTask:
    """One element of an array, and where its files lie below the root folder."""

    job: int
    index: int
    batch: str
    array: str

    @property
    def remote_id(self) -> str:
        """As the ledger keeps it; it begins as Slurm writes it."""
        return f"{self.job}_{self.index}/{self.batch}/{self.array}"

    @property
    def element(self) -> Element:
        """Job id and index."""
        return self.job, self.index

    @staticmethod
    def of(remote_id: str) -> SlurmTask:
        """Raises `ProviderError` for what is no id of ours."""
        found = _TASK.fullmatch(remote_id)
        if found is None or not (_NAME.fullmatch(found[3]) and _NAME.fullmatch(found[4])):
            raise ProviderError(f"{remote_id[:200]!r} is not the id of a task at Slurm.")
        return SlurmTask(int(found[1]), int(found[2]), found[3], found[4])


def safe_name(name: str) -> bool:
    """Whether it can be a file's name and a job's: Slurm splits lists of names at commas."""
    return _NAME.fullmatch(name) is not None


class Login:
    """A cluster, its `root` folder for one project, and the commands that are run for it.

    Nothing is asked before it has to be. Every method raises `Unreachable` when Slurm or its
    login node does not answer.
    """

    def __init__(self, shell: Shell, rules: SlurmRules, project: str) -> None:
        self.shell = shell
        self.rules = rules
        self._project = project
        self._root: str | None = None
        self._environment: dict[str, str] = {}
        self._accounts = True

    @property
    def place(self) -> str:
        """What the place is called."""
        return self.shell.place

    @property
    def root(self) -> str:
        """The absolute path of the project's folder on scratch; asked for and made once.

        It is found out with it where Slurm's commands are, which many accounts know only after
        a login.
        """
        if self._root is None:
            done = self._run(login_command(self.rules.scratch, self._project))
            root, path, conf, *_ = [*done.out.split("\n"), "", "", ""]
            if done.code == NO_FOLDER or not _ABSOLUTE.fullmatch(root):
                raise Refused(
                    f"{self.place}: the folder {self.rules.scratch}/{self._project} cannot be "
                    f"made: {done.words}. Name another one with scratch."
                )
            known = {"PATH": path, "SLURM_CONF": conf}
            self._environment = {name: text for name, text in known.items() if text}
            self._root = root
        return self._root

    def array_folder(self, task: SlurmTask) -> str:
        """Where the array's task folders and marks lie."""
        return f"{self.root}/{task.batch}/{task.array}"

    def queue(self, names: Collection[str]) -> Mapping[Element, Row]:
        """The rows of these arrays in Slurm's queue."""
        done = self._ask(queue_command(names))
        if done.code:
            raise Unreachable(
                f"{self.place}: Slurm does not answer: {done.words}. It is asked again by itself."
            )
        return queue_rows(done.out, names)

    def accounts(self, names: Collection[str]) -> Mapping[Element, Row]:
        """The rows of these arrays in Slurm's accounts; none where they do not answer."""
        if not self._accounts:
            return {}
        done = self._ask(accounting_command(names))
        if done.code == 0:
            return accounting_rows(done.out, names)
        if _NO_ACCOUNTS.search(done.err):
            self._accounts = False
        return {}

    def traces(self, tasks: Sequence[SlurmTask]) -> Mapping[SlurmTask, Traces]:
        """What each of these elements left."""
        given = traces_input((task.element, self.array_folder(task)) for task in tasks)
        done = self._ask(traces_command(self.root), given, TRACES_SECONDS)
        if done.code:
            raise Unreachable(
                f"{self.place}: {self.root} is not there now. What lies in it is looked at when "
                "it is back."
            )
        return dict(zip(tasks, traces_of(done.out, [task.job for task in tasks]), strict=True))

    def make_folders(self, batch: str, array: str, indexes: Sequence[int]) -> None:
        """Makes the folders of an array's tasks. Raises `Refused` when they cannot be made."""
        done = self._ask(folders_command(self.root, batch, array, indexes))
        if done.code:
            raise Refused(
                f"{self.place}: nothing can be written in {self.root}: {done.words}. "
                "Make room there.",
                account=True,
            )

    def submit(self, batch: str, array: str, indexes: Sequence[int], rung: int) -> int:
        """Sends an array whose task folders are on scratch; its job id.

        Raises `Refused` when nothing was accepted for certain, `ProviderError` when that is not
        known.
        """
        folder = f"{self.root}/{batch}/{array}"
        sbatch = sbatch_argv(self.rules, array, folder, indexes, rung)
        script = batch_script(self.rules, array, folder, rung)
        command = submit_command(self.root, batch, array, indexes[0], sbatch)
        still_ours()
        done = self.shell.run(command, script, SUBMIT_SECONDS, self._environment)
        if done.code == NO_FOLDER:
            raise Unreachable(f"{self.place}: {folder} is gone; it is sent again by itself.")
        if done.code == NO_ROOM:
            raise Refused(
                f"{self.place}: nothing can be written in {folder}: {done.words}. Make room there.",
                account=True,
            )
        job = job_of(done.out)
        if done.code:
            raise submit_error(self.place, done)
        if job is None:
            raise ProviderError(
                f"{self.place}: sbatch gave no job id: {done.words}. "
                "Slurm is asked for the job by its name."
            )
        return job

    def find(self, array: str) -> SlurmTask | None:
        """The array of that name, with index 0; of several the one that was first.

        Looked for in the queue, among what its elements left, and in the accounts. One of the
        same name that works outside the root folder is another project's, with the same pages.
        """
        jobs = self._jobs(self.queue([array]))
        done = self._ask(find_command(self.root, array))
        batch, *lines = done.out.split("\n")
        if not jobs:
            marks = [mark_of(line) for line in lines]
            jobs = {mark.job for mark in marks if mark is not None}
            jobs |= {job for job in map(job_of, lines) if job is not None}
        if not jobs:
            jobs = self._jobs(self.accounts([array]))
        if not jobs:
            return None
        return SlurmTask(min(jobs), 0, batch if safe_name(batch) else "gone", array)

    def _jobs(self, rows: Mapping[Element, Row]) -> set[int]:
        ours = f"{self.root}/"
        return {
            job
            for (job, _), row in rows.items()
            if not row.refused and (not row.folder or row.folder.startswith(ours))
        }

    def cancel(self, task: SlurmTask) -> None:
        """Asks Slurm to end an element; one that has ended already is no error."""
        done = self._ask(cancel_command(self.array_folder(task), task.array, task.element))
        if done.code and not _OVER_ALREADY.search(done.err):
            raise Unreachable(
                f"{self.place}: scancel {task.job}_{task.index} failed: {done.words}."
            )

    def clear(self, tasks: Sequence[tuple[str, str, int]]) -> list[int]:
        """Removes what lies of tasks on scratch, and what no other one needs there.

        Each is told by its batch folder, array and index. Gives the numbers, from 0, of those of
        which nothing is left.
        """
        done = self._ask(clear_command(self.root), clear_input(tasks), TRACES_SECONDS)
        return cleared(done.out, len(tasks))

    def check(self) -> str:
        """What Slurm says of itself, and of an array as the settings would have it; none is sent.

        Raises `Refused` when it would not take one, `Unreachable` when it does not answer.
        """
        self.queue(["recipes-check"])
        version = self._ask(["sbatch", "--version"]).out.strip()
        sbatch = sbatch_argv(self.rules, "recipes-check", self.root, [0], 0)
        done = self._ask([sbatch[0], "--test-only", *sbatch[1:]], "#!/bin/sh\n")
        if done.code:
            raise submit_error(self.place, done)
        return f"{version}; {done.words.removeprefix('sbatch: ')}"

    def _ask(self, argv: Sequence[str], stdin: str = "", timeout: float = ASK_SECONDS) -> Done:
        assert self.root  # which also finds out where Slurm's commands are
        return self._run(argv, stdin, timeout)

    def _run(self, argv: Sequence[str], stdin: str = "", timeout: float = ASK_SECONDS) -> Done:
        """A command that may be run any number of times: no answer is as good as not asked."""
        try:
            return self.shell.run(argv, stdin, timeout, self._environment)
        except Unreachable:
            raise
        except ProviderError as error:
            raise Unreachable(str(error)) from error
