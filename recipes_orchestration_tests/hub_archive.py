"""An archive whose first steps run as jobs of the rehearsed hub."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recipes_orchestration.engine.advance import Seen, advance
from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.places.hf_jobs import orders as hf_orders
from recipes_orchestration.rehearsal import HUB, HUB_USER, Rehearsal

from .job_archive import BATCH, JobArchive, first_stage, make_job_archive

__all__ = [
    "DATASET",
    "RUNNER",
    "advance_to_rest",
    "creates",
    "failure_of",
    "far_files",
    "hub_archive",
    "hub_place",
    "kill_job",
    "putting_back_often",
    "sent",
    "tries_of",
    "until",
]

DATASET = f"{HUB_USER}/archive"
RUNNER = "python3 -m recipes_orchestration.runner.main"


def hub_place(hub: Rehearsal, **more: Any) -> dict[str, Any]:
    """What a project says of the hub."""
    return {
        "namespace": HUB_USER,
        "endpoint": hub.url,
        "dataset": DATASET,
        "runner": RUNNER,
        "settle_seconds": 0.5,
        **more,
    }


def hub_archive(
    folder: Path, hub: Rehearsal, names: list[str] | None = None, *, pages: int = 4, **more: Any
) -> JobArchive:
    """Pages of one batch; `more` is said of the place."""
    return make_job_archive(
        folder / "project", hub_place(hub, **more), names or [], pages=pages, place="hf_jobs"
    )


def putting_back_often(monkeypatch: Any) -> None:
    """Lets jobs put their results back several times a second."""
    monkeypatch.setattr(hf_orders, "LEAST_EVERY", 0.3)
    monkeypatch.setattr(hf_orders, "COMMITS_AN_HOUR", 1_000_000)


def until(holds: Callable[[], object], seconds: float = 120) -> None:
    """Waits until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def creates(hub: Rehearsal) -> int:
    """How many jobs the hub was asked for."""
    return hub.counts(HUB)["creates"]


def far_files(hub: Rehearsal, name: str = "") -> dict[str, int]:
    """The files in the repository whose paths end so, and their sizes."""
    return {path: size for path, size in hub.hub.files(DATASET).items() if path.endswith(name)}


def kill_job(hub: Rehearsal) -> None:
    """Kills the processes of the running job, as the end of its machine would."""
    (job,) = [each for each in list(hub.hub.jobs.values()) if each.ended is None]
    until(lambda: job.group is not None)
    os.killpg(job.group or 0, signal.SIGKILL)
    until(lambda: job.ended is not None)


def sent(engine: Engine) -> Seen:
    """Sends the first stage's work."""
    seen = advance(engine, first_stage(engine), BATCH)
    assert seen.remote
    return seen


def advance_to_rest(engine: Engine, calls: int = 1000) -> Seen:
    """Advances the first stage until there is nothing to wait for."""
    for _ in range(calls):
        seen = advance(engine, first_stage(engine), BATCH)
        if seen.at_rest:
            return seen
        time.sleep(0.1)
    raise AssertionError("it did not come to rest")


def failure_of(engine: Engine) -> str:
    """Why the stage's task fails as a whole, once it does."""
    failures: list[str] = []

    def failed() -> bool:
        failures.append(advance(engine, first_stage(engine), BATCH).failure or "")
        return bool(failures[-1])

    until(failed)
    return failures[-1]


def tries_of(engine: Engine) -> dict[str, str]:
    """Pages that failed so far, by their first step, and the kind of the failure."""
    rows = engine.ledger.holds.attempts_of("letters", "letters", BATCH)
    return {page: str(row.reason) for (page, step, _), row in rows.items() if step == "size"}
