"""The work of `recipes run`: a recipe in the foreground, batch by batch, told to Dagster."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..engine.advance import run_stage
from ..engine.cancelled import take_up
from ..engine.engine import Engine
from ..engine.look import BatchView, PageState, look
from ..engine.sheet import Scope, sheet_of
from ..engine.status import FolderStatus
from ..errors import NotFound, PlaceError, RecipesError
from ..ledger.pages import BatchRow
from ..pages.naming import shown
from ..recipe import Recipe
from ..stages import stages_of
from .alerting import alerting
from .consenting import tell_missing_consent
from .discovering import find_pages, tell_pages
from .interrupts import Stopping, stopping_in_order
from .opening import batches_in, dagster_instance, did_you_mean, opened, steps_named
from .output import Output
from .run_outcome import Outcome, StageOutcome
from .run_report import tell_run
from .sheets import asks, go_on
from .telling import Teller
from .waiting import Waiting

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Outcome", "StageOutcome", "Wanted", "run_recipe"]


@dataclass(frozen=True)
class Wanted:
    """What to run: a recipe, or a part of it. Empty means all.

    `now`: a person waits for it, so that nothing goes as a batch. `pages_may_leave`: the person
    says so.
    """

    recipe: str
    folder: str | None = None
    steps: tuple[str, ...] = ()
    batches: tuple[str, ...] = ()
    now: bool = False
    pages_may_leave: bool = False


def run_recipe(
    project: Path | None,
    wanted: Wanted,
    *,
    discover: bool,
    dagster: bool,
    as_json: bool,
    yes: bool = True,
) -> None:
    """Runs what is wanted, shows where it stands, and ends with the run's exit code.

    Without `yes` a person at a terminal is shown the sheet first and asked.

    A batch that cannot be completed does not stop the others; a place that fails as a whole
    stops the run. Stopped, it lands what is done, and what it was at is free for the next run;
    batches at a provider stay open there and are taken up again.
    """
    output = Output(as_json=as_json)
    started = time.monotonic()
    with ExitStack() as last:
        may_leave = wanted.pages_may_leave
        with (
            opened(project, pages_may_leave=may_leave) as engine,
            stopping_in_order(output.note) as stopping,
        ):
            last.enter_context(alerting(engine.project))
            recipe = engine.project.recipe(wanted.recipe)
            steps = steps_named(recipe, wanted.steps)
            outcome = Outcome(recipe)
            tell_missing_consent(output, engine.project, recipe, steps, request=may_leave)
            try:
                with dagster_instance(engine.project, wanted=dagster) as instance:
                    if discover:
                        outcome.discovered = find_pages(engine, recipe.source, output)
                    found = outcome.discovered.batches if outcome.discovered else ()
                    tell_pages(engine, instance, recipe.source, found)
                    batches = _wanted_batches(engine, recipe, wanted)
                    if asks(yes=yes, as_json=as_json):
                        _ask(engine, recipe, wanted, output)
                    take_up(engine, recipe.name, [batch.key for batch in batches], steps)
                    teller = Teller(engine, instance, recipe)
                    try:
                        way = _Way(teller, stopping, output, wanted.now)
                        _run_stages(engine, outcome, steps, batches, way)
                    finally:
                        outcome.materialized = teller.told
            except KeyboardInterrupt:
                outcome.stopped = True
            outcome.seconds = time.monotonic() - started
        tell_run(output, outcome)
    raise typer.Exit(outcome.exit_code)


def _ask(engine: Engine, recipe: Recipe, wanted: Wanted, output: Output) -> None:
    """Ends the command when the person does not want what the sheet shows."""
    scope = Scope(wanted.folder, wanted.steps, wanted.batches, wanted.now)
    if not go_on(output, sheet_of(engine, recipe, scope)):
        output.note("Nothing was run.")
        raise typer.Exit


def _wanted_batches(engine: Engine, recipe: Recipe, wanted: Wanted) -> list[BatchRow]:
    batches = batches_in(engine, recipe.source, wanted.folder)
    known = {batch.key for batch in batches}
    for key in wanted.batches:
        if key not in known:
            raise NotFound(
                f"Source {recipe.source} has no batch {shown(key)} here{did_you_mean(key, known)} "
                "A batch is named FOLDER/0001, as `recipes show PAGE` gives it."
            )
    return [
        batch
        for batch in batches
        if batch.pages and (not wanted.batches or batch.key in wanted.batches)
    ]


@dataclass(frozen=True)
class _Way:
    """What is the same for all batches of a run. `now`: a person waits for it."""

    teller: Teller
    stopping: Stopping
    output: Output
    now: bool


def _run_stages(
    engine: Engine,
    outcome: Outcome,
    steps: Sequence[str],
    batches: Sequence[BatchRow],
    way: _Way,
) -> None:
    with way.output.progress() as progress:
        for stage in stages_of(outcome.recipe):
            chosen = [step.name for step in stage.steps if step.name in steps]
            if not chosen:
                continue
            at = StageOutcome(stage, chosen)
            outcome.stages.append(at)
            _run_batches(engine, at, batches, way, progress)
            if at.failure is not None:
                return


def _run_batches(
    engine: Engine,
    at: StageOutcome,
    batches: Sequence[BatchRow],
    way: _Way,
    progress: Progress,
) -> None:
    """Every batch once; those that wait for a place elsewhere again, until none does.

    All are sent before the first is waited for: a provider may take a day for each.
    """
    total = sum(batch.pages for batch in batches) * len(at.steps)
    bar = progress.add_task(at.stage.name, total=total, unit="results")
    waiting = Waiting(engine, at.stage, way.output)
    todo = list(batches)
    while todo:
        deferred: list[BatchRow] = []
        for batch in todo:
            way.stopping.raise_if_asked()
            progress.update(bar, description=f"{at.stage.name} {shown(batch.folder)}")
            if not _run_batch(engine, at, batch, way, waiting, partial(progress.advance, bar)):
                deferred.append(batch)
            if at.failure is not None:
                return
        try:
            todo = waiting.until_some_can_go_on(deferred, way.stopping)
        except PlaceError as error:
            at.failure = error
            return
    progress.update(bar, completed=total)


def _run_batch(
    engine: Engine,
    at: StageOutcome,
    batch: BatchRow,
    way: _Way,
    waiting: Waiting,
    advance_bar: Callable[[int], None],
) -> bool:
    """Runs a batch as far as it goes; False when it waits for a place elsewhere."""
    before = at.landed

    def on_landed(rows: int) -> None:
        at.landed += rows
        advance_bar(rows)
        way.stopping.raise_if_asked()

    done = True
    try:
        with _naming_the_batch(at, batch):
            view = run_stage(
                engine,
                at.stage,
                batch.key,
                at.steps,
                on_landed=on_landed,
                poll_seconds=engine.project.limits.poll_seconds,
                now=way.now,
                defer=partial(waiting.note, batch.key),
            )
            if view is None:
                done = False
            else:
                _note(at, batch, view)
                way.teller.tell(view, at.steps, landed=at.landed > before)
    except KeyboardInterrupt:
        # What was finished has landed meanwhile: the table is to show it.
        _note(at, batch, look(engine, at.stage.recipe, batch.key, at.steps))
        raise
    if not way.output.live and at.landed > before:
        way.output.note(f"{shown(batch.key)}: {at.landed - before:,} results landed")
    return done


@contextmanager
def _naming_the_batch(at: StageOutcome, batch: BatchRow) -> Generator[None]:
    """A place that fails ends the stage; anything else that fails is the batch's own."""
    try:
        yield
    except PlaceError as error:
        at.failure = error
    except RecipesError as error:
        at.failures[batch.key] = error


def _note(at: StageOutcome, batch: BatchRow, view: BatchView) -> None:
    at.folders.setdefault(batch.folder, FolderStatus(batch.folder)).add(view, at.steps)
    for name in at.steps:
        step = view.steps[name]
        if not step.complete(view.recipe.max_held):
            at.incomplete.append(f"{batch.key} {name}")
            if step.count(PageState.WAITING):
                at.waiting |= {need for need in step.step.needs if need not in at.steps}
