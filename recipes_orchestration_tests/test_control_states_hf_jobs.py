"""The table of docs/control.md at Hugging Face Jobs, on the rehearsed hub, all cells."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.rehearsal import HUB, HubScript, Rehearsal, hub_runs
from recipes_orchestration.rehearsal.hub_runs import Job, JobRuns

from .control_jobs import Came, check, play
from .control_table import JOBS, STATES
from .hub_archive import hub_place

pytestmark = pytest.mark.slow


@dataclass
class Hub:
    """The rehearsed hub, which can be told to lose answers and to be slow to end jobs."""

    hub: Rehearsal
    place: str = "hf_jobs"

    def settings(self, folder: Path) -> Mapping[str, Any]:
        return hub_place(self.hub, max_open=100)

    @contextmanager
    def losing_replies(self, jobs: int) -> Generator[None]:
        self.hub.script(HUB, _script(lose_reply=jobs))
        yield
        self.hub.script(HUB, _script())

    @contextmanager
    def slow_to_end(self) -> Generator[None]:
        over = threading.Event()
        waiting: list[threading.Thread] = []
        end = JobRuns.end

        def end_later(runs: JobRuns, job: Job, stage: str, message: str | None = None) -> None:
            def later() -> None:
                over.wait()
                end(runs, job, stage, message)

            waiting.append(threading.Thread(target=later))
            waiting[-1].start()

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(JobRuns, "end", end_later)
            yield
        over.set()
        for thread in waiting:
            thread.join()

    def jobs(self) -> list[str]:
        return [job["labels"]["recipes-task"] for job in self.hub.counts(HUB)["jobs"]]


def _script(**more: Any) -> HubScript:
    """A job that is ended has time to put back what it has."""
    return HubScript(grace_seconds=60, **more)


@pytest.fixture(scope="module")
def jobs(hub_server: Rehearsal) -> Iterator[Hub]:
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    with pytest.MonkeyPatch.context() as patched:
        for key, value in hub_server.environment().items():
            patched.setenv(key, value)
        # The client reads its environment when it is imported, which was long ago.
        patched.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
        patched.setattr(sys, "path", list(sys.path))
        # All jobs of a state are to run at once, and most of them only wait.
        patched.setattr(hub_runs, "MAX_RUNNING", 16)
        yield Hub(hub_server)
    hub_server.reset()


@pytest.fixture(scope="module", params=STATES)
def came(
    request: pytest.FixtureRequest, jobs: Hub, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, Came]]:
    """The state, and what each decision came to in it."""
    state: str = request.param
    jobs.hub.reset()
    jobs.hub.script(HUB, _script())
    return state, play(jobs, tmp_path_factory.mktemp(state), state)


@pytest.mark.parametrize("decision", JOBS)
def test_a_decision_in_a_state_of_a_job(came: tuple[str, dict[str, Came]], decision: str) -> None:
    state, cells = came
    check(cells[decision], decision, state, "hf_jobs")
    # Every job is booked by its minutes.
    assert cells[decision].bookings == len(JOBS[decision][state].end.tasks)
