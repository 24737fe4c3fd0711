"""The outcome of a task: what became of each page and step. Written last, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import platform
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from .checked_json import json_of
from .journal import Journal, entries_of
from .supervisor import Loads
from .task_folder import FORMAT, OUT, OUTCOME, RESULTS, Manifest, runner_version, write_whole

__all__ = ["is_complete", "outcome_of", "write_outcome"]

_MAX_OUTCOME_BYTES = 256 * 1024 * 1024
# What results depend on, where it is installed.
_PACKAGES = (
    "pillow",
    "pypdfium2",
    "numpy",
    "rapidocr",
    "onnxruntime",
    "opencv-python-headless",
    "spacy",
    "wordllama",
    "torch",
    "transformers",
)


def is_complete(folder: Path) -> bool:
    """Whether an outcome is there already that says that all is done."""
    try:
        with (folder / OUT / OUTCOME).open("rb") as stream:
            found = json_of(stream.read(_MAX_OUTCOME_BYTES))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("complete") is True


def write_outcome(folder: Path, outcome: Mapping[str, Any]) -> None:
    """Writes the outcome into the task folder. Raises `OSError`."""
    (folder / OUT).mkdir(parents=True, exist_ok=True)
    write_whole(folder / OUT / OUTCOME, json.dumps(outcome, allow_nan=False).encode())


def outcome_of(
    folder: Path,
    manifest: Manifest | None,
    *,
    complete: bool,
    failure: str | None,
    started: datetime,
    ended: datetime,
    loads: Mapping[str, Loads],
    restarts: int,
) -> dict[str, Any]:
    """The outcome of the task as it stands in its results, read one after another.

    `manifest` is None when it could not be read: then the folder says which task it was.
    """
    pages: dict[str, dict[str, list[Any]]] = {}
    results = {"lines": 0, "bytes": 0, "sha256": hashlib.sha256().hexdigest()}
    if manifest is not None and (folder / OUT / RESULTS).exists():
        with Journal(folder / OUT / RESULTS):
            pass  # Opened and closed, it has whole lines alone.
        results = _results(folder / OUT / RESULTS, pages)
    return {
        "format": FORMAT,
        "task": "_".join(folder.parts[-2:]) if manifest is None else manifest.task,
        "complete": complete,
        "failure": failure,
        "started": started.isoformat(),
        "ended": ended.isoformat(),
        "results": results,
        "steps": [] if manifest is None else _steps(manifest, pages, loads),
        "pages": pages,
        "peak_memory_mb": _peak_memory_mb(),
        "versions": _versions(),
        "restarts": restarts,
    }


def _results(path: Path, pages: dict[str, dict[str, list[Any]]]) -> dict[str, Any]:
    lines = 0
    with path.open("rb") as stream:
        for entry in entries_of(stream):
            lines += 1
            ended = "landed" if entry.failed is None else "failed"
            pages.setdefault(entry.page_id, {})[entry.step] = [ended, entry.seconds]
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"lines": lines, "bytes": path.stat().st_size, "sha256": digest}


def _steps(
    manifest: Manifest, pages: Mapping[str, Mapping[str, list[Any]]], loads: Mapping[str, Loads]
) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for step in manifest.steps:
        asked = sum(step.name in page.steps for page in manifest.pages)
        ended = [steps[step.name] for steps in pages.values() if step.name in steps]
        seconds = [each for how, each in ended if how == "landed"]
        landed = len(seconds)
        loaded = loads.get(step.name, Loads())
        told.append(
            {
                "name": step.name,
                "landed": landed,
                "failed": len(ended) - landed,
                "left": max(0, asked - len(ended)),
                "seconds": {
                    "min": min(seconds, default=0.0),
                    "median": round(median(seconds), 6) if seconds else 0.0,
                    "max": max(seconds, default=0.0),
                    "total": round(sum(seconds), 6),
                },
                "model_loads": loaded.count,
                "load_seconds": round(loaded.seconds, 3),
            }
        )
    return told


def _peak_memory_mb() -> float:
    """The most that one worker had in memory; Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)


def _versions() -> dict[str, str]:
    found = {"recipes-orchestration": runner_version(), "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
