"""Emulated providers over real HTTP, for tests, the demo and benchmarks."""

from __future__ import annotations

from .hub import HubSide
from .hub_desk import HUB_ORGANIZATION, HUB_TOKEN, HUB_USER
from .hub_script import HubScript
from .script import CancelLines, Script
from .server import HUB, PROVIDERS, Rehearsal, running_rehearsal

__all__ = [
    "HUB",
    "HUB_ORGANIZATION",
    "HUB_TOKEN",
    "HUB_USER",
    "PROVIDERS",
    "CancelLines",
    "HubScript",
    "HubSide",
    "Rehearsal",
    "Script",
    "running_rehearsal",
]
