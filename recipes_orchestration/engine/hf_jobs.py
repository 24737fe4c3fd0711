"""A place of Hugging Face Jobs, opened from what the project says of it."""

from __future__ import annotations

import os
import re

from ..errors import ConfigError
from ..job_settings import HfJobsSettings
from ..places.hf_jobs.hf_jobs_place import HfJobsPlace
from ..places.hf_jobs.hub import Hub
from ..places.hf_jobs.orders import HfRules, Machine, secrets_of
from ..places.hf_jobs.shelves import BucketShelf, DatasetShelf
from ..places.hf_jobs.store import Store
from ..project import Project

__all__ = ["open_hf_jobs_place"]


def open_hf_jobs_place(project: Project, name: str) -> HfJobsPlace:
    """The place of that name. Opens no connection.

    Raises `ConfigError` when a variable that is to hold the token or a secret is not set, and
    `MissingExtra` when huggingface_hub is not installed.
    """
    settings = project.places[name]
    assert isinstance(settings, HfJobsSettings)
    token = os.environ.get(settings.token_env)
    if not token:
        raise ConfigError(
            f"The place {name} takes the Hub's token from {settings.token_env}, which is not set; "
            "set it in the environment."
        )
    secrets_of(settings.secrets)
    hub = Hub(settings.namespace, token, settings.endpoint)
    if settings.bucket is not None:
        shelf = BucketShelf(hub, settings.bucket)
    else:
        shelf = DatasetShelf(hub, settings.dataset or "")
    return HfJobsPlace(
        hub,
        Store(shelf, _top(project.name)),
        _rules(settings, capped=project.has_caps),
        root=project.folder / ".recipes" / "tasks" / name,
        project=f"{project.name} {settings.bucket or settings.dataset}",
        name=name,
    )


def _rules(settings: HfJobsSettings, *, capped: bool) -> HfRules:
    rungs = [settings.rung(number) for number in range(len(settings.ladder) + 1)]
    return HfRules(
        image=settings.image,
        runner=settings.runner,
        setup=settings.setup,
        ladder=tuple(
            Machine(
                rung.flavor or settings.flavor,
                round((rung.timeout_minutes or settings.timeout_minutes) * 60),
            )
            for rung in rungs
        ),
        secrets=settings.secrets,
        pages_per_task=settings.pages_per_task,
        task_seconds=settings.aim_seconds,
        max_open=settings.max_open,
        settle_seconds=settings.settle_seconds,
        capped=capped,
    )


def _top(project: str) -> str:
    """The project's folder in the bucket or repository: projects may share one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", project).strip("-").lower()[:80] or "project"
