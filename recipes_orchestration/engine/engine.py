"""The engine's stores and places, opened together for one project."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

from ..ledger.database import Ledger, open_ledger
from ..ledger.task_rows import TaskRow
from ..library.library import Library
from ..pages.source import Source
from ..place_settings import CloudSettings
from ..places.place import Place, Report
from ..places.processes import this_process
from ..project import Project
from ..recipe import Recipe
from ..stages import Stage, stages_of
from .opening import open_place

__all__ = ["Engine", "open_engine"]

LAND_EVERY_MINUTES = 10.0


@dataclass
class Engine:
    """One project with its ledger, library and places. `owner` names it in the ledger.

    `fetch_again` is from when on the results of a task may be fetched again, by its id, in seconds
    of the monotonic clock; `end_again` from when on its place may be asked again to end one that a
    person stopped. `on_report` is told what the far side said of a task that has landed.
    `pages_may_leave` is the yes of the person for whose request the engine works.
    """

    project: Project
    ledger: Ledger
    library: Library
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    owner: str = field(default_factory=lambda: f"{this_process()}/{uuid4().hex[:12]}")
    fetch_again: dict[str, float] = field(default_factory=dict[str, float])
    over_cap: dict[tuple[str, str, str, int], Decimal] = field(
        default_factory=dict[tuple[str, str, str, int], Decimal]
    )
    end_again: dict[str, float] = field(default_factory=dict[str, float])
    pages_may_leave: bool = False
    on_report: Callable[[TaskRow, Report], None] | None = None

    def stage_of(self, recipe: Recipe, step: str) -> Stage:
        """The stage that runs the step."""
        return next(
            stage for stage in stages_of(recipe) if any(each.name == step for each in stage.steps)
        )

    def source(self, name: str) -> Source:
        """The source of that name, ready to be listed and read. Raises `NotFound`."""
        settings = self.project.source(name)
        return Source(
            name=name,
            root=settings.root,
            storage_options=settings.storage_options,
            hidden=settings.hidden,
            max_bytes=self.project.limits.max_file_mb * 1_000_000,
        )

    def place(self, name: str) -> Place:
        """The place of that name, opened at its first use."""
        if name not in self.places:
            self.places[name] = open_place(self.project, name)
        return self.places[name]

    def paused(self, place: str) -> str | None:
        """Why nothing is sent to the place now; None when it is not paused."""
        pause = self.ledger.pauses.of(place)
        if pause is None:
            return None
        if pause.until is not None:
            return f"{place} is paused until {pause.until:%H:%M} UTC: {pause.words}"
        if pause.until_reached:
            return f"{place} is paused: {pause.words}"
        return f"{place} is paused: {pause.words} Mend it, then run: recipes resume {place}"

    def slots(self, place: str) -> int | None:
        """How many more tasks with a slot the place may have open; None where there are none."""
        most = self.place(place).max_open
        return None if most is None else max(0, most - self.ledger.tasks.slots_taken(place))

    def on_expired(self, place: str) -> str:
        """How pages go on whose time at the place was over: `batch`, `calls` or `hold`."""
        settings = self.project.places.get(place)
        return settings.on_expired if isinstance(settings, CloudSettings) else "batch"

    def land_every(self, place: str) -> timedelta:
        """A stage of several tasks lands those that have ended so long after the first of them."""
        settings = self.project.places.get(place)
        return timedelta(minutes=getattr(settings, "land_every", LAND_EVERY_MINUTES))

    def close(self) -> None:
        """Ends the workers of the places and the connections to the ledger."""
        for place in self.places.values():
            place.close()
        self.places.clear()
        self.ledger.close()


@contextmanager
def open_engine(project: Project, *, pages_may_leave: bool = False) -> Generator[Engine]:
    """The project's engine for as long as the block lasts; the ledger is migrated on the way.

    `pages_may_leave`: a person says so for what the engine is opened for.
    """
    library = Library(project.library, project.library_storage_options)
    ledger = open_ledger(project.ledger_url)
    engine = Engine(project, ledger=ledger, library=library, pages_may_leave=pages_may_leave)
    try:
        yield engine
    finally:
        engine.close()
