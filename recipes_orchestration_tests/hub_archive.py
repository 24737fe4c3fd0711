"""An archive whose first steps run as jobs of the rehearsed hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipes_orchestration.rehearsal import HUB_USER, Rehearsal

from .job_archive import JobArchive, make_job_archive

__all__ = ["DATASET", "hub_archive", "hub_place"]

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
