"""A real `dagster dev` over a project on a free port, for tests that need the UI or its API."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from recipes_orchestration.orchestration.instance import DEFAULT_YAML

__all__ = ["DagsterDev", "free_port", "running_dagster"]

READY = """{
  workspaceOrError {
    ... on Workspace { locationEntries { locationOrLoadError {
      __typename
      ... on PythonError { message stack }
    } } }
  }
  instance { daemonHealth { allDaemonStatuses { daemonType healthy required } } }
}"""


@dataclass(frozen=True)
class DagsterDev:
    """A running webserver with its daemon. `home` is its DAGSTER_HOME, `log` what it printed."""

    url: str
    home: Path
    log: Path
    process: subprocess.Popen[bytes]

    def graphql(self, query: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The `data` of the answer; fails the test with Dagster's words when there are errors."""
        body = json.dumps({"query": query, "variables": dict(variables or {})}).encode()
        request = urllib.request.Request(
            f"{self.url}/graphql", data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.loads(response.read())
        assert not answer.get("errors"), answer["errors"]
        return answer["data"]

    def told(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-5000:]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def running_dagster(
    project_folder: Path,
    home: Path,
    *,
    ready_seconds: float = 180.0,
    environment: Mapping[str, str] | None = None,
) -> Generator[DagsterDev]:
    """`dagster dev` over the project until the block ends; then none of its processes is left.

    Ready means that the code location is loaded and that the daemons which queue runs and launch
    backfills are healthy. `home` is made with the packaged `dagster.yaml` when it has none. The
    sensors tick as they do for everybody; they start no run of a recipe that is `when: manual`.
    """
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        shutil.copyfile(DEFAULT_YAML, settings)
    port = free_port()
    log = home.parent / f"{home.name}-dev.log"
    command = [
        *(sys.executable, "-m", "dagster", "dev", "-m", "recipes_orchestration.definitions"),
        *("-h", "127.0.0.1", "-p", str(port)),
    ]
    variables = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "RECIPES_PROJECT": str(project_folder),
        **(environment or {}),
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=project_folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    dev = DagsterDev(f"http://127.0.0.1:{port}", home, log, process)
    try:
        _wait_until_ready(dev, ready_seconds)
        yield dev
    finally:
        _end(process)


def _wait_until_ready(dev: DagsterDev, seconds: float) -> None:
    until = time.monotonic() + seconds
    why = "it never answered"
    while time.monotonic() < until:
        if dev.process.poll() is not None:
            raise AssertionError(f"dagster dev ended at once:\n{dev.told()}")
        try:
            data = dev.graphql(READY)
        except (urllib.error.URLError, OSError) as error:
            why = str(error)
        else:
            entries = data["workspaceOrError"]["locationEntries"]
            loaded = [entry["locationOrLoadError"] for entry in entries]
            for each in loaded:
                # An entry without a location is one that is still being loaded.
                assert each is None or each["__typename"] != "PythonError", each
            daemons = {
                each["daemonType"]: each["healthy"]
                for each in data["instance"]["daemonHealth"]["allDaemonStatuses"]
            }
            if any(loaded) and all(
                daemons.get(name) for name in ("BACKFILL", "QUEUED_RUN_COORDINATOR")
            ):
                return
            why = f"{loaded}, {daemons}"
        time.sleep(0.5)
    raise AssertionError(f"dagster dev was not ready in {seconds:g} s ({why}):\n{dev.told()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole group, and children that left it; politely first, so that runs can stop."""
    family: list[psutil.Process] = []
    if process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(15)
    _, alive = psutil.wait_procs(family, timeout=5)
    for child in alive:
        child.kill()
    psutil.wait_procs(alive, timeout=5)
