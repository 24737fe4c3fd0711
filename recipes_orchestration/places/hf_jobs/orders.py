"""What a job of Hugging Face is told: its command, its machine, its labels, its secrets."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import ConfigError
from ...recipe import digest
from .hub import Hub, JobOrder
from .store import Reach

__all__ = ["HfRules", "Machine", "TaskPlace", "label_of", "order_of", "secrets_of", "task_place_of"]

PROJECT_LABEL, TASK_LABEL = "recipes-project", "recipes-task"
"""Labels of jobs: whose they are, and by which a task is found again."""

_BATCH, _TASK = "RECIPES_BATCH", "RECIPES_TASK"
# "Keys and values can contain letters, digits, - and _", at most 100 of them (docs/hub/
# jobs-configuration and update_job_labels of huggingface_hub 2.4).
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,100}")
_FOLDER = re.compile(r"[A-Za-z0-9._~-]{1,255}(/[A-Za-z0-9._~-]{1,255}){0,20}")
# A repository takes 128 commits an hour, and other things are committed too.
COMMITS_AN_HOUR = 90
LEAST_EVERY = 300.0
# Before its time is over the task is ended, so that its results get back.
_LAST_SHARE, _LAST_SECONDS = 0.1, 180.0


@dataclass(frozen=True)
class Machine:
    """What a job runs on, and how long at most, in seconds."""

    flavor: str
    timeout: int


@dataclass(frozen=True)
class HfRules:
    """How jobs are made. `ladder` are the machines of pages that got too little, by how often.

    `setup` are lines of shell before the `runner`, `secrets` names of variables of this machine.
    Results are put back every `put_back_seconds` while a job runs; by default as often as the
    repository lets all of them. `capped`: what a job can cost at most is to be told.
    """

    image: str
    runner: str = "recipes-runner"
    setup: tuple[str, ...] = ()
    ladder: tuple[Machine, ...] = (Machine("cpu-basic", 7200),)
    secrets: tuple[str, ...] = ()
    pages_per_task: int | None = None
    task_seconds: float = 3600.0
    max_open: int = 4
    settle_seconds: float = 60.0
    put_back_seconds: float | None = None
    capped: bool = False

    def machine(self, rung: int) -> Machine:
        """Where a task runs whose pages got too little so often."""
        return self.ladder[min(rung, len(self.ladder) - 1)]


@dataclass(frozen=True)
class TaskPlace:
    """Where a task lies: its batch folder, and its own folder in that."""

    batch: str
    task: str

    @property
    def folder(self) -> str:
        """The task folder."""
        return f"{self.batch}/{self.task}"


def label_of(text: str) -> str:
    """The text as a label: as it is where it may be one, else with its hash."""
    if _LABEL.fullmatch(text):
        return text
    return f"{re.sub(r'[^A-Za-z0-9_-]', '-', text)[:60]}-{digest(text)}"


def secrets_of(names: tuple[str, ...]) -> dict[str, str]:
    """The values of the variables. Raises `ConfigError` for one that is not set."""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise ConfigError(
            f"Jobs are to be given {' and '.join(missing)} as secrets, and that is not set here; "
            "set it in the environment."
        )
    return {name: os.environ[name] for name in names}


def order_of(
    name: str, project: str, at: TaskPlace, machine: Machine, rules: HfRules, reach: Reach, hub: Hub
) -> JobOrder:
    """The job of a task."""
    secrets = secrets_of(rules.secrets)
    if reach.with_token:
        secrets = {**secrets, "HF_TOKEN": hub.token}
    environment = {_BATCH: at.batch, _TASK: at.task}
    if hub.endpoint is not None:
        environment["HF_ENDPOINT"] = hub.endpoint
    label = label_of(name)
    return JobOrder(
        name=label,
        labels={TASK_LABEL: label, PROJECT_LABEL: label_of(project)},
        image=rules.image,
        command=["sh", "-c", _script(at, machine, rules, reach)],
        flavor=machine.flavor,
        timeout=machine.timeout,
        environment=environment,
        secrets=secrets,
        volumes=reach.volumes,
    )


def task_place_of(environment: Mapping[str, str]) -> TaskPlace | None:
    """Where the task of a job lies, as it was told to the job; None for a job of others."""
    batch, task = environment.get(_BATCH, ""), environment.get(_TASK, "")
    for each in (batch, task):
        if not _FOLDER.fullmatch(each) or {".", ".."} & set(each.split("/")):
            return None
    return TaskPlace(batch, task)


def _script(at: TaskPlace, machine: Machine, rules: HfRules, reach: Reach) -> str:
    every = rules.put_back_seconds
    if every is None:
        every = max(LEAST_EVERY, 3600.0 * rules.max_open / COMMITS_AN_HOUR)
    left = min(_LAST_SECONDS, machine.timeout * _LAST_SHARE)
    command = [
        *("python3", "-m", "recipes_orchestration.runner.hub_task"),
        *reach.arguments,
        *("--task", at.task, "--runner", rules.runner),
        *("--every", f"{every:g}", "--stop-after", f"{machine.timeout - left:.0f}"),
    ]
    return "\n".join(["set -e", *rules.setup, f"exec {shlex.join(command)}"])
