"""`make demo-cloud`: batches at a rehearsed provider, deferred, killed with their Dagster, adopted.

Everything is started as a user would start it: `recipes rehearse`, `dagster dev`, `recipes
backfill`. Nothing needs a key, and nothing leaves this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from ..errors import DagsterError, PlaceError
from .dagster_api import DagsterApi
from .output import Output, count

__all__ = ["main"]

PATIENCE_SECONDS = 900.0
_ACTIVE = """
query {
  runsOrError(filter: {statuses: [NOT_STARTED, QUEUED, STARTING, STARTED]}, limit: 1000) {
    ... on Runs { results { status tags { key value } } }
  }
}
"""
_say = Output(as_json=False).line


def main() -> None:
    """Runs the example in `examples/cloud` to its end, with a kill in the middle."""
    from ..orchestration.instance import DEFAULT_YAML

    # However it is ended, nothing that it started may stay behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    project = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/cloud").resolve()
    for each in ("library", ".recipes", ".dagster"):
        shutil.rmtree(project / each, ignore_errors=True)
    home = project / ".dagster"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(DEFAULT_YAML, home / "dagster.yaml")
    with ExitStack() as stack:
        rehearsed = stack.enter_context(_rehearsal())
        provider = f"{rehearsed['url']}/_rehearsal/anthropic"
        _ask(f"{provider}/script", {"never_ends": True}, method="PUT")
        environment = {
            **os.environ,
            **rehearsed["environment"],
            "RECIPES_PROJECT": str(project),
            "DAGSTER_HOME": str(home),
            "RECIPES_ADOPT_SECONDS": "5",
        }
        _recipes(environment, "discover")
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        _say("\nThe rehearsed provider takes batches and leaves them open, as for a day.")
        with _dagster(environment, port, home):
            _say(f"Dagster runs at {url} and is given a backfill over all page batches.")
            told = _recipes(environment, "backfill", "letters", "--url", url, "--no-wait", "--json")
            backfill = json.loads(told)["backfill"]
            _wait_until_deferred(url, rehearsed["url"], home)
            _say("\nDagster is killed (kill -9). The provider goes on with the batches.")
        with _dagster(environment, port, home):
            _say("Dagster is started anew. Now the provider has answered.")
            _ask(f"{provider}/finish", {}, method="POST")
            _wait_until_done(url, backfill)
        _recipes(environment, "status")
        _recipes(environment, "spend")
        sent = Counter(_counts(rehearsed["url"])["requests"].values())
        once = "each exactly once" if set(sent) == {1} else f"NOT once each: {dict(sent)}"
        _say(f"\n{count(sum(sent.values()), 'page')} were sent to the provider, {once}.")
        _say(f"Results: {project / 'library'}")


@contextmanager
def _rehearsal() -> Generator[dict[str, Any]]:
    """A rehearsal server of its own process, and the environment by which SDKs find it."""
    port = _free_port()
    command = [
        *(sys.executable, "-m", "recipes_orchestration.rehearsal"),
        *("--port", str(port), "--providers", "anthropic"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        variables: dict[str, str] = {}
        for line in process.stdout:
            if not line.startswith("export "):
                break
            name, _, value = line.removeprefix("export ").strip().partition("=")
            variables[name] = value
        yield {"url": f"http://127.0.0.1:{port}", "environment": variables}
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def _dagster(environment: dict[str, str], port: int, home: Path) -> Generator[None]:
    """`dagster dev` until the block ends; then it and all of its processes are killed."""
    command = [
        *(sys.executable, "-m", "dagster", "dev", "-m", "recipes_orchestration.definitions"),
        *("-h", "127.0.0.1", "-p", str(port)),
    ]
    with (home / "dev.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not _answers(port):
            if time.monotonic() > until or process.poll() is not None:
                raise DagsterError(f"Dagster did not start; see {home / 'dev.log'}.")
            time.sleep(1)
        yield
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.wait()


def _wait_until_deferred(url: str, rehearsed: str, home: Path) -> None:
    """Waits until every run that is left waits in the queue for its batch, and none is at work."""
    shown = 0
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        batches = _counts(rehearsed)["batches"]
        if len(batches) > shown:
            shown = len(batches)
            _say(f"  {count(shown, 'batch', 'batches')} at the provider")
        runs = _active(url)
        waiting = [run["recipes/task"] for run in runs if run.get("recipes/await") == "open"]
        if len(waiting) == len(runs) == len(batches) > 0 and not _run_processes(home):
            _say(f"No run has a process now. {count(len(waiting), 'run')} wait in the queue for:")
            for batch in sorted(waiting):
                _say(f"  {batch}")
            return
        time.sleep(1)
    raise DagsterError(f"The runs did not come to wait in the queue; look at {url}/runs.")


def _wait_until_done(url: str, backfill: str) -> None:
    api = DagsterApi(url)
    until = time.monotonic() + PATIENCE_SECONDS
    while not (state := api.backfill(backfill)).ended:
        if time.monotonic() > until:
            raise DagsterError(f"The backfill {backfill} did not end; look at {url}.")
        time.sleep(2)
    _say(f"What it gave has landed, the steps behind it are done. The backfill: {state.status}.\n")


def _active(url: str) -> list[dict[str, str]]:
    """The tags of the runs that have not ended."""
    runs = _ask(f"{url}/graphql", {"query": _ACTIVE})["data"]["runsOrError"].get("results", [])
    return [{tag["key"]: tag["value"] for tag in run["tags"]} for run in runs]


def _run_processes(home: Path) -> int:
    """How many processes of this instance's runs there are."""
    found = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if "execute_run" in " ".join(process.cmdline()) and (
                process.environ().get("DAGSTER_HOME") == str(home)
            ):
                found += 1
    return found


def _counts(rehearsed: str) -> dict[str, Any]:
    return _ask(f"{rehearsed}/_rehearsal/counts")["anthropic"]


def _recipes(environment: dict[str, str], *arguments: str) -> str:
    """Runs a command: shows what it prints, or gives its JSON document."""
    command = [sys.executable, "-m", "recipes_orchestration.cli", *arguments]
    kept = subprocess.PIPE if "--json" in arguments else None
    done = subprocess.run(command, env=environment, check=False, stdout=kept, text=True)
    if done.returncode not in (0, 1):
        raise PlaceError(f"`recipes {' '.join(arguments)}` ended with {done.returncode}.")
    return done.stdout or ""


def _ask(url: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
        return json.loads(response.read() or b"null")


def _answers(port: int) -> bool:
    with suppress(OSError, ValueError):
        query = "{ workspaceOrError { ... on Workspace { locationEntries { loadStatus } } } }"
        data = _ask(f"http://127.0.0.1:{port}/graphql", {"query": query})
        entries = data["data"]["workspaceOrError"]["locationEntries"]
        return bool(entries) and all(entry["loadStatus"] == "LOADED" for entry in entries)
    return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    main()
