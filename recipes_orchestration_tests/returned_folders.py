"""Folders as a runner gives them back, right and wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes_orchestration.places.task_folders.returned import Expected, Returned, read_returned
from recipes_orchestration.runner.task_folder import encode_line
from recipes_orchestration.runner.work import Outcome

TASK = f"lines-{'0' * 32}_0"
EXPECTED = Expected(
    TASK,
    {"p1": ("lines", "read"), "p2": ("lines", "read"), "p3": ("read",)},
    {"read": ("lines",)},
)


def value_line(page: str, step: str, value: Any = None, seconds: Any = 1.5) -> bytes:
    return encode_line({"page": page, "step": step, "seconds": seconds, "value": value})


def failure_line(page: str, step: str, kind: str = "failed", words: str = "no ink") -> bytes:
    failure = {"kind": kind, "words": words}
    return encode_line({"page": page, "step": step, "seconds": 0.5, "failure": failure})


def outcome_of(results: bytes, /, **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "format": 1,
        "task": TASK,
        "complete": True,
        "failure": None,
        "started": "2026-11-30T00:00:00+00:00",
        "ended": "2026-11-30T01:00:00+00:00",
        "results": {
            "lines": results.count(b"\n"),
            "bytes": len(results),
            "sha256": hashlib.sha256(results).hexdigest(),
        },
        "steps": [
            {
                "name": "lines",
                "landed": 2,
                "failed": 0,
                "left": 0,
                "seconds": {"min": 1.0, "median": 1.5, "max": 2.0, "total": 3.0},
                "model_loads": 1,
                "load_seconds": 0.3,
            }
        ],
        "pages": {"p1": {"lines": ["landed", 1.5]}},
        "peak_memory_mb": 512.5,
        "versions": {"recipes-orchestration": "0.1.0", "python": "3.11.7"},
        "restarts": 1,
    }
    return {**told, **more}


def returned(
    folder: Path,
    lines: Sequence[bytes] | bytes,
    outcome: dict[str, Any] | bytes | None = None,
    expected: Expected = EXPECTED,
) -> Returned:
    """Writes the folder `out` and reads it."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    results = lines if isinstance(lines, bytes) else b"".join(lines)
    (out / "results.jsonl").write_bytes(results)
    if outcome is not None:
        data = outcome if isinstance(outcome, bytes) else json.dumps(outcome).encode()
        (out / "outcome.json").write_bytes(data)
    return read_returned(out, expected)


def outcomes(given: Returned) -> list[Outcome]:
    return [outcome for chunk in given.chunks() for outcome in chunk]
