"""Runs pages in a worker of this machine, and tells what that took besides the outcomes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .run_pages import Setting, run_pages, take_loads
from .work import Outcome, PageWork

__all__ = ["Measured", "run_measured"]


class Measured(NamedTuple):
    """Outcomes, the step and seconds of each model that was loaded for them, and the memory.

    `peak_memory_mb` is the most that the worker had since it began.
    """

    outcomes: list[Outcome]
    loads: list[tuple[str, float]]
    peak_memory_mb: float


def run_measured(setting: Setting, works: Sequence[PageWork]) -> Measured:
    """As `run_pages`, which says what it raises."""
    take_loads()  # those of work that failed as a whole
    outcomes = run_pages(setting, works)
    return Measured(outcomes, take_loads(), _peak_memory_mb())


def _peak_memory_mb() -> float:
    # `ru_maxrss` of Linux begins with what the parent had (setmax_mm_hiwater_rss in fs/exec.c);
    # VmHWM (proc_pid_status(5)) is of this process alone.
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
