"""The place `hf_jobs`: tasks as jobs on machines of Hugging Face, one job a task."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from ...runner.task_folder import MANIFEST, NEEDS
from ...runner.work import TaskSpec
from ..job_costs import JobCost
from ..money import Expected
from ..place import Bill, Chunk, Package, Report, Sent, Sought, Standing, State, array_of
from ..task_folders.far_folders import Over
from ..task_folders.packaging import Packaging, PackedTask, cut, rung_of
from .clearing import cleared
from .ends import end_of, is_over
from .hub import OPEN_STAGES, Hub, Job
from .orders import (
    PROJECT_LABEL,
    TASK_LABEL,
    HfRules,
    TaskPlace,
    label_of,
    order_of,
    task_place_of,
)
from .prices import UNKNOWN, PriceList, cost_of, kept_price
from .results import HfResults
from .store import Store

__all__ = ["HfJobsPlace"]

# A job takes so many seconds to begin, as the sheet takes it.
STARTS_WITHIN = 60.0
# A job whose time is over is ended so many seconds later at most.
ENDED_WITHIN = 60.0


class HfJobsPlace:
    """Jobs of one namespace for one project; batch folders lie in `root` here and in the store.

    `project` tells its jobs from those of others who use the same namespace.

    A job's id is its task's remote id. The Hub has no key by which it would know a request that
    comes twice: a job is found again by its label. Where its task lies the job itself says, so
    that another process can land it.
    """

    # The time limit of a job ends it at the Hub.
    overdue_seconds: float | None = None
    # A job that the Hub does not know is gone: a key of others would be refused the namespace.
    keeps_seconds: float | None = 0.0

    def __init__(
        self,
        hub: Hub,
        store: Store,
        rules: HfRules,
        *,
        root: Path,
        project: str,
        name: str = "hf_jobs",
    ) -> None:
        self.name = name
        self.max_open: int | None = rules.max_open
        self.settle_seconds = rules.settle_seconds
        self._hub = hub
        self._store = store
        self._rules = rules
        self._root = root
        self._project = project
        self._ours = {PROJECT_LABEL: label_of(project)}
        self._results = HfResults(store, root)
        self._at: dict[str, TaskPlace] = {}
        self._over: dict[str, Job] = {}
        self._costs: dict[str, JobCost] = {}
        self._prices = PriceList(hub)

    def takes_slot(self, pages: int, *, now: bool) -> bool:  # noqa: ARG002
        """Always: every task is a job."""
        return True

    def pack(self, spec: TaskSpec, *, now: bool = False) -> Iterator[Sequence[Package]]:  # noqa: ARG002
        """The work cut into tasks whose pages stand on one rung of the ladder."""
        rules = self._rules
        parts = cut(spec, rules.pages_per_task, spec.seconds_per_page, rules.task_seconds)
        with Packaging(self._root / spec.folder) as packaging:
            for part in parts:
                packed = packaging.pack(part)
                rung = rung_of(part.pages[0])
                group = {"batch": spec.folder, "rung": rung, "pages": len(packed.pages)}
                group |= self._prices.kept(self._rules.machine(rung).flavor)
                usd, unknown = self._worst(rung) if packed.pages else (Decimal(0), "")
                yield [
                    Package(
                        pages=packed.page_ids,
                        decided=packed.decided,
                        calls=packed.calls,
                        slot=bool(packed.pages),
                        group=group,
                        content=(packaging, packed),
                        worst_usd=usd,
                        worst_unknown=unknown,
                        expected=self._expected(rung, spec.seconds_per_page, len(packed.pages)),
                    )
                ]

    def _worst(self, rung: int) -> tuple[Decimal | None, str]:
        """What a job costs that runs into its time limit, if a cap has to know it."""
        if not self._rules.capped:
            return None, ""
        machine = self._rules.machine(rung)
        price = self._prices.of(machine.flavor)
        if price.basis == UNKNOWN:
            return None, f"The price of the flavor {machine.flavor} is not known: choose another"
        # The Hub may take a moment to end it, and each minute that was begun counts.
        return cost_of(price, machine.timeout + ENDED_WITHIN), ""

    def _expected(self, rung: int, seconds: float | None, pages: int) -> Expected | None:
        """What a job of so many pages will likely cost; None when nothing has landed before."""
        price = self._prices.of(self._rules.machine(rung).flavor)
        if seconds is None or price.basis == UNKNOWN:
            return None
        # It starts before its first page.
        return Expected(cost_of(price, pages * seconds + STARTS_WITHIN))

    def discard(self, package: Package) -> None:
        """Nothing is held by a package: its files are there for the next one."""

    def submit(self, names: Sequence[str], packages: Sequence[Package]) -> Sequence[str]:
        """Sends what the task needs and is not in the store, then starts its job."""
        return [self._submit(*each) for each in zip(names, packages, strict=True)]

    def _submit(self, name: str, package: Package) -> str:
        packaging: Packaging
        packed: PackedTask
        packaging, packed = package.content
        at = _task_place(name, package.group)
        machine = self._rules.machine(int(package.group["rung"]))
        packaging.write(name, packed)
        reach = self._store.reach(at.batch)
        order = order_of(name, self._project, at, machine, self._rules, reach, self._hub)
        self._store.send(self._root, at.batch, self._files(at, packed))
        job = self._hub.run(order)
        self._at[job.id] = at
        return job.id

    def _files(self, at: TaskPlace, packed: PackedTask) -> Iterator[str]:
        """What a task needs. Its own folder goes first: while it is there its pages are kept."""
        batch = self._root / at.batch
        for name in (NEEDS, MANIFEST):
            if (batch / at.task / name).is_file():
                yield f"{at.task}/{name}"
        for file in packed.files:
            path = batch / file
            if path.is_dir():
                below = sorted(each for each in path.rglob("*") if each.is_file())
                yield from (each.relative_to(batch).as_posix() for each in below)
            else:
                yield file

    def find(self, sought: Sought) -> str | None:
        """The id of the job with the task's label; the first one when there are several.

        One of the same name that has another project's label has the same pages and is not ours.
        """
        found = None
        for job in self._hub.jobs({TASK_LABEL: label_of(sought.name), **self._ours}):
            if job.id not in sought.known and job.stage != "DELETED":
                found = self._noted(job).id
        return found

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, Standing]:
        """How each stands: open ones from one list, the others one by one, as they have ended."""
        left = set(remote_ids)
        standings: dict[str, Standing] = {}
        if left:
            for job in self._hub.jobs(self._ours, OPEN_STAGES):
                if job.id in left and not is_over(job):
                    standings[job.id] = _running(job)
                    left.discard(job.id)
                if not left:
                    break
        for id in left:
            job = self._hub.job(id)
            if job is not None and not is_over(self._noted(job)):
                standings[id] = _running(job)
            else:
                standings[id] = self._ended(id, job)
        return standings

    def _ended(self, id: str, job: Job | None) -> Standing:
        """A job that is over: its results land, unless it failed by itself and has none."""
        at = self._at.get(id)
        if job is not None:
            self._over[id] = job
        end = end_of(job)
        if at is None:
            if job is None:
                return Standing(State.LOST, f"{end.words}: {id}")
            return Standing(State.FAILED, f"{id} is no job of a task: {end.words}")
        written = self._results.written(at)
        if job is None:
            state = State.ENDED if written.anything else State.LOST
            return Standing(state, f"{end.words}: {id}")
        if end.kind is None and written.failure is not None:
            return Standing(State.FAILED, f"The task of job {id} cannot be done: {written.failure}")
        if end.kind is None and not written.anything:
            log = self._hub.log(id)
            words = f"The {end.words}. It wrote nothing" + (f"; its log ends: {log}" if log else "")
            return Standing(State.FAILED, f"{words}.", account=end.account)
        return Standing(State.ENDED, end.words)

    def results(self, sent: Sent) -> Iterator[Chunk]:
        """What the job wrote, and a failure for each page that it did not come to."""
        at = _task_place(sent.name, sent.group)
        self._at[sent.remote_id] = at
        job = self._over.get(sent.remote_id) or self._hub.job(sent.remote_id)
        if job is not None and not is_over(job):
            return
        cost = None
        if job is not None:
            cost = self._costs[sent.remote_id] = self._cost(job, sent.group)
        yield from self._results.chunks(sent, at, end_of(job), cost)

    def bill(self, remote_id: str) -> Bill | None:
        """The minutes that the job ran on its machine, at the Hub's price for it."""
        job = self._over.get(remote_id) or self._hub.job(remote_id)
        if job is None:
            return None
        return (self._costs.get(remote_id) or self._cost(job, {})).bill()

    def _cost(self, job: Job, group: Mapping[str, Any]) -> JobCost:
        """The job's cost at the price of its machine when it was sent, where it is known."""
        price = kept_price(group, job.flavor) or self._prices.of(job.flavor)
        usd = None if price.basis == UNKNOWN else cost_of(price, job.seconds)
        return JobCost(job.flavor, usd, price.basis)

    def report(self, remote_id: str) -> Report | None:
        """What the runner told, once its results were read."""
        return self._results.report(remote_id)

    def cancel(self, remote_id: str) -> None:
        """Asks the Hub to end the job; what it has put back can still be fetched."""
        self._hub.cancel(remote_id)

    def forget(self, remote_id: str) -> None:
        """Lets go of what is known of the job; its folders are removed by `clear`."""
        self._at.pop(remote_id, None)
        self._over.pop(remote_id, None)
        self._costs.pop(remote_id, None)
        self._results.forget(remote_id)

    def clear(self, tasks: Sequence[Over]) -> Iterator[str]:
        """Removes the tasks' folders here and there."""
        places = {task.name: _task_place(task.name, task.group) for task in tasks}
        return cleared(self._store, self._root, places)

    def ends_here(self, remote_id: str | None) -> bool:  # noqa: ARG002
        """Never: jobs run whoever sent them."""
        return False

    def wait(self, seconds: float) -> None:
        """Waits: the Hub tells nothing by itself."""
        time.sleep(seconds)

    def close(self) -> None:
        """Nothing is held open: the connections are those of huggingface_hub in this process."""

    def _noted(self, job: Job) -> Job:
        """Remembers where the task of a job lies."""
        at = task_place_of(job.environment)
        if at is not None:
            self._at.setdefault(job.id, at)
        return job


def _running(job: Job) -> Standing:
    return Standing(State.RUNNING, f"{job.stage.lower()} on {job.flavor}")


def _task_place(name: str, group: Mapping[str, object]) -> TaskPlace:
    array, index = array_of(name)
    return TaskPlace(str(group["batch"]), f"{array}/{index}")
