"""What a run came to, and the exit code that says so."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..engine.discover import Discovered
from ..engine.status import FolderStatus
from ..errors import PlaceError, RecipesError
from ..recipe import Recipe
from ..stages import Stage
from .exits import ALL_RIGHT, NOT_COMPLETE, STOPPED, exit_code_of

__all__ = ["Outcome", "StageOutcome"]


@dataclass
class StageOutcome:
    """One stage of a run. `landed` counts the results of this run, `failures` are by batch."""

    stage: Stage
    steps: list[str]
    landed: int = 0
    incomplete: list[str] = field(default_factory=list[str])
    waiting: set[str] = field(default_factory=set[str])
    failures: dict[str, RecipesError] = field(default_factory=dict[str, RecipesError])
    failure: PlaceError | None = None
    folders: dict[str, FolderStatus] = field(default_factory=dict[str, FolderStatus])


@dataclass
class Outcome:
    """A whole run. `materialized` counts what Dagster was told for the first time."""

    recipe: Recipe
    discovered: Discovered | None = None
    stages: list[StageOutcome] = field(default_factory=list[StageOutcome])
    materialized: int = 0
    stopped: bool = False
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 when every batch is complete at every step that was wanted."""
        if self.stopped:
            return STOPPED
        errors = [error for stage in self.stages for error in stage.failures.values()]
        errors += [stage.failure for stage in self.stages if stage.failure is not None]
        if errors:
            return max(exit_code_of(error) for error in errors)
        return NOT_COMPLETE if any(stage.incomplete for stage in self.stages) else ALL_RIGHT
