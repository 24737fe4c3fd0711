"""What a task of this process took, added up as its outcomes come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ..runner.work import Outcome

__all__ = ["Measures"]


@dataclass
class _Step:
    asked: int
    landed: int = 0
    failed: int = 0
    seconds: list[float] = field(default_factory=list[float])
    loads: int = 0
    load_seconds: float = 0.0


class Measures:
    """Seconds a page, models loaded and memory of one task; `asked` are the pages of each step.

    `restarts` counts the workers that ended, `peak_memory_mb` is the most that one of them had;
    None where the work is done elsewhere.
    """

    def __init__(self, asked: Mapping[str, int]) -> None:
        self.restarts = 0
        self.peak_memory_mb: float | None = None
        self._steps = {name: _Step(count) for name, count in asked.items()}

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """What was done on some pages; one in no seconds was done along with another."""
        for outcome in outcomes:
            step = self._steps[outcome.step]
            if outcome.failure is not None:
                step.failed += 1
                continue
            step.landed += 1
            if outcome.seconds:
                step.seconds.append(outcome.seconds)

    def loaded(self, loads: Iterable[tuple[str, float]], peak_memory_mb: float) -> None:
        """Models were loaded in so many seconds, and a worker had so much memory."""
        for step, seconds in loads:
            self._steps[step].loads += 1
            self._steps[step].load_seconds += seconds
        self.peak_memory_mb = max(peak_memory_mb, self.peak_memory_mb or 0.0)

    def facts(self) -> dict[str, Any]:
        """The same as `Report.facts`."""
        facts: dict[str, Any] = {
            "steps": [_told(name, step) for name, step in self._steps.items()],
            "restarts": self.restarts,
        }
        if self.peak_memory_mb is not None:
            facts["peak_memory_mb"] = self.peak_memory_mb
        return facts


def _told(name: str, step: _Step) -> dict[str, Any]:
    return {
        "name": name,
        "landed": step.landed,
        "failed": step.failed,
        "left": max(0, step.asked - step.landed - step.failed),
        "seconds": {
            "min": round(min(step.seconds, default=0.0), 6),
            "median": round(median(step.seconds), 6) if step.seconds else 0.0,
            "max": round(max(step.seconds, default=0.0), 6),
            "total": round(sum(step.seconds), 6),
        },
        "model_loads": step.loads,
        "load_seconds": round(step.load_seconds, 3),
    }
