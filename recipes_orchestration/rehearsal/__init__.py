"""Emulated providers over real HTTP, for tests, the demo and benchmarks."""

from __future__ import annotations

from .script import CancelLines, Script
from .server import PROVIDERS, Rehearsal, running_rehearsal

__all__ = ["PROVIDERS", "CancelLines", "Rehearsal", "Script", "running_rehearsal"]
