"""A real `dagster dev` over a recipe with steps elsewhere, with a hurried daemon."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from recipes_orchestration.orchestration.deferral import EVERY_VARIABLE
from recipes_orchestration.orchestration.run_tags import AWAIT, TASK
from recipes_orchestration.rehearsal import Rehearsal

from .archive import Archive
from .command_runs import recipes
from .dagster_dev import DagsterDev, running_dagster

__all__ = ["RUNS", "DagsterRun", "Site", "open_site"]

T = TypeVar("T")

# Dagster's daemon looks at backfills every 30 s and at its queue every 5 s, and neither backfills
# nor sensors can be told to be quicker by any setting.
HURRY = """\
import sys

if "dagster._daemon" in sys.orig_argv:
    import dagster._daemon.controller
    import dagster._daemon.sensor
    from dagster._core.run_coordinator.queued_run_coordinator import QueuedRunCoordinator

    dagster._daemon.controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 2
    dagster._daemon.sensor.MIN_INTERVAL_LOOP_TIME = 1
    QueuedRunCoordinator.dequeue_interval_seconds = property(lambda self: 1)
"""

RUNS = """query Q($filter: RunsFilter) { runsOrError(filter: $filter) { ... on Runs { results {
  runId status tags { key value } } } } }"""
BACKFILL = """query Q($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }"""
TERMINATE = """mutation M($id: String!) {
  terminateRun(runId: $id) { __typename ... on TerminateRunFailure { message } } }"""
SENSORS = """{ repositoriesOrError { ... on RepositoryConnection { nodes {
  sensors { name sensorState { id status ticks(limit: 1) { status } } } } } } }"""
STOP_SENSOR = "mutation M($id: String!) { stopSensor(id: $id) { __typename } }"


@dataclass(frozen=True)
class DagsterRun:
    """A run as the UI shows it."""

    id: str
    status: str
    tags: Mapping[str, str]


@dataclass
class Site:
    """The project, its provider and the `dagster dev` over it, which may be killed in between."""

    archive: Archive
    rehearsal: Rehearsal | None
    environment: Mapping[str, str]
    home: Path
    recipe: str = "measure"
    _dev: DagsterDev | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def dev(self) -> DagsterDev:
        if self._dev is None:
            running = running_dagster(self.archive.folder, self.home, environment=self.environment)
            self._dev = self._stack.enter_context(running)
        return self._dev

    @property
    def _provider(self) -> Rehearsal:
        assert self.rehearsal is not None
        return self.rehearsal

    def kill(self) -> None:
        """Kills all of it with SIGKILL, the processes of its runs included."""
        process = self.dev.process
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGKILL)
        for each in family:
            if each.is_running():
                each.kill()
        psutil.wait_procs(family, timeout=20)
        process.wait(20)
        self.close()

    def close(self) -> None:
        self._stack.close()
        self._dev = None

    def backfill(self, folder: str) -> str:
        """Launches a backfill of all steps over the folder and gives its id."""
        arguments = ("--folder", folder, "--url", self.dev.url, "--json", "--no-wait")
        ran = recipes(self.archive, "backfill", self.recipe, *arguments)
        assert ran.code == 0, ran.err
        return str(ran.document["backfill"])

    def status(self, backfill: str) -> str:
        data = self.dev.graphql(BACKFILL, {"id": backfill})
        return str(data["partitionBackfillOrError"]["status"])

    def runs(self, backfill: str) -> list[DagsterRun]:
        """The backfill's runs, newest first."""
        tags = [{"key": "dagster/backfill", "value": backfill}]
        data = self.dev.graphql(RUNS, {"filter": {"tags": tags}})
        return [
            DagsterRun(
                run["runId"], run["status"], {tag["key"]: tag["value"] for tag in run["tags"]}
            )
            for run in data["runsOrError"]["results"]
        ]

    def waiting(self, backfill: str) -> list[DagsterRun]:
        """The continuations that have to stay in the queue."""
        runs = self.runs(backfill)
        return [run for run in runs if run.status == "QUEUED" and run.tags.get(AWAIT) == "open"]

    def no_run_process_since(self, moment: float, seconds: float = 120.0) -> None:
        """Fails when what was started after that moment does not end."""
        until = time.monotonic() + seconds
        while (found := self._started_since(moment)) and time.monotonic() < until:
            time.sleep(0.5)
        assert found == []

    def _started_since(self, moment: float) -> list[str]:
        """The processes of runs: code servers and their trackers are started anew at any time."""
        found: list[str] = []
        for process in psutil.Process(self.dev.process.pid).children(recursive=True):
            try:
                line = " ".join(process.cmdline())
                late = process.create_time() > moment
            except psutil.NoSuchProcess:
                continue
            if late and line and "resource_tracker" not in line and "api grpc" not in line:
                found.append(line)
        return found

    def terminate(self, run: DagsterRun) -> None:
        """What the button of the UI does."""
        answer = self.dev.graphql(TERMINATE, {"id": run.id})["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def stop_sensor(self, name: str) -> None:
        """Stops it for good: a tick that was under way writes it down as running again."""

        def rests() -> bool:
            nodes = self.dev.graphql(SENSORS)["repositoriesOrError"]["nodes"]
            sensors = [sensor for node in nodes for sensor in node["sensors"]]
            (state,) = [each["sensorState"] for each in sensors if each["name"] == name]
            if state["status"] == "STOPPED":
                return all(tick["status"] != "STARTED" for tick in state["ticks"])
            answer = self.dev.graphql(STOP_SENSOR, {"id": state["id"]})["stopSensor"]
            assert answer["__typename"] == "StopSensorMutationResult", answer
            return False

        self.until(rests)
        time.sleep(2)
        self.until(rests)

    def until(self, what: Callable[[], T], seconds: float = 420.0) -> T:
        """The first answer that is something; fails with what Dagster printed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if answer := what():
                return answer
            time.sleep(0.5)
        raise AssertionError(f"it did not happen in {seconds:g} s:\n{self.dev.told()}")

    def ended(self, backfill: str, seconds: float = 420.0) -> str:
        """How the backfill ended."""
        return self.until(
            lambda: status if (status := self.status(backfill)).startswith("COMPLETED") else "",
            seconds,
        )

    def all_waiting(self, backfill: str, count: int) -> list[DagsterRun]:
        """Its continuations once so many wait and no other run is about."""

        def look() -> list[DagsterRun]:
            waiting = self.waiting(backfill)
            others = Counter(run.status for run in self.runs(backfill)) - Counter(SUCCESS=10_000)
            return waiting if others == Counter(QUEUED=count) and len(waiting) == count else []

        return self.until(look)

    def known_to_wait(self, backfill: str, count: int) -> list[DagsterRun]:
        """Its continuations once each shows an id at the provider: it may be queued before its
        task's id was heard.
        """

        def look() -> list[DagsterRun]:
            waiting = self.waiting(backfill)
            known = {batch["id"] for batch in self.batches()}
            return waiting if len(waiting) == count and ids_of(waiting) <= known else []

        return self.until(look, 60)

    def batches(self) -> list[Mapping[str, Any]]:
        """What the provider has, in the order in which it came."""
        return list(self._provider.counts("anthropic")["batches"])

    def sent(self) -> Counter[str]:
        """How often each request came, by its hash."""
        counts = self._provider.counts("anthropic")
        return Counter(counts["requests"]) + Counter(counts["plain_requests"])


def ids_of(runs: list[DagsterRun]) -> set[str]:
    return {run.tags[TASK] for run in runs}


@contextmanager
def open_site(
    archive: Archive,
    rehearsal: Rehearsal | None,
    folder: Path,
    environment: Mapping[str, str],
    recipe: str = "measure",
) -> Generator[Site]:
    """The site until the block ends; `dagster dev` starts at its first use."""
    hurry = folder / "hurry"
    hurry.mkdir()
    (hurry / "sitecustomize.py").write_text(HURRY)
    variables = {
        **(rehearsal.environment() if rehearsal is not None else {}),
        **environment,
        EVERY_VARIABLE: "2",
        # A busy machine takes longer to start a run than the minute that Dagster gives it.
        "DAGSTER_GRPC_TIMEOUT_SECONDS": "300",
        "PYTHONPATH": str(hurry),
    }
    site = Site(archive, rehearsal, variables, archive.folder / "dagster_home", recipe)
    try:
        yield site
    finally:
        site.close()
