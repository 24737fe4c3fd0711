"""The rehearsed Hugging Face hub as fixtures, with its real client: forgetful between tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from recipes_orchestration.rehearsal import HUB, HUB_TOKEN, HUB_USER, Rehearsal, running_rehearsal

if TYPE_CHECKING:  # the client takes its time to import, and all tests come by here
    from huggingface_hub import HfApi, JobInfo

__all__ = ["REPO", "add", "hub", "hub_api", "hub_server", "python_job", "until_ended"]

REPO = f"{HUB_USER}/pages"


@pytest.fixture(scope="session")
def hub_server() -> Iterator[Rehearsal]:
    """The hub alone. Tests take `hub`, which begins empty."""
    with running_rehearsal((HUB,)) as running:
        yield running


@pytest.fixture
def hub(hub_server: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rehearsal]:
    """The hub, empty, and the environment that leads to it."""
    from huggingface_hub.utils import disable_progress_bars

    hub_server.reset()
    for key, value in hub_server.environment().items():
        monkeypatch.setenv(key, value)
    # The client reads its environment when it is imported, which was long ago.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
    disable_progress_bars()
    yield hub_server
    hub_server.reset()


@pytest.fixture
def hub_api(hub: Rehearsal) -> HfApi:
    """The client, with an empty private dataset repository `REPO`."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub.url, token=HUB_TOKEN)
    api.create_repo(REPO, repo_type="dataset", private=True)
    return api


def add(api: HfApi, files: dict[str, bytes], *, repo: str = REPO) -> str:
    """Commits files; the id of the commit."""
    from huggingface_hub import CommitOperationAdd

    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    done = api.create_commit(repo, operations, commit_message="add", repo_type="dataset")
    return done.oid


def python_job(api: HfApi, code: str, *words: str, **given: Any) -> JobInfo:
    """A job that runs a line of Python."""
    asked: dict[str, Any] = {"image": "python:3.12", "flavor": "cpu-basic", **given}
    asked.setdefault("namespace", HUB_USER)
    return api.run_job(command=["python", "-c", code, *words], **asked)


def until_ended(api: HfApi, job: JobInfo, seconds: float = 60) -> JobInfo:
    """The job when it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = api.inspect_job(job_id=job.id, namespace=job.owner.name)
        if found.status.stage not in ("SCHEDULING", "RUNNING"):
            return found
        time.sleep(0.05)
    raise AssertionError(f"{job.id} has not ended after {seconds} s")
