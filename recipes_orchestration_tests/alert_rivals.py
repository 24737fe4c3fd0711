"""Processes that find and tell the same alerts at the same moment; see `ledger_rivals`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from recipes_orchestration.engine.alerts import (
    configured_channels,
    look_for_alerts,
    tell_alerts,
)
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.ledger.alerts import AlertKind, Cause
from recipes_orchestration.ledger.database import open_ledger
from recipes_orchestration.project import load_project

__all__ = ["keep", "look_and_tell"]


def keep(number: int, wait: Callable[[], object], url: str, rounds: int) -> list[int]:
    """In each round keeps a cause that all rivals find; gives how many were fresh."""
    fresh: list[int] = []
    with open_ledger(url) as ledger:
        for turn in range(rounds):
            cause = Cause(f"paused/{turn}", AlertKind.PAUSED, f"rival {number} saw it")
            wait()
            fresh.append(ledger.alerts.keep([cause], ()))
    return fresh


def look_and_tell(
    number: int,
    wait: Callable[[], object],
    folder: Path,
    ledger_url: str,
    hook: str,
) -> list[str]:
    """What two sensors do, or one and a run: three ticks each."""
    os.environ |= {"RECIPES_LEDGER_URL": ledger_url, "HOOK": hook}
    troubles: list[str] = []
    with open_engine(load_project(folder)) as engine:
        for _ in range(3):
            wait()
            look_for_alerts(engine)
            troubles += tell_alerts(engine, configured_channels(engine), 30)
    return troubles
