"""What a task is sent for and what it is landed with, made of the ledger and the library."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, overload

from ..ledger.pages import BatchPage
from ..ledger.tasks import TaskRow
from ..library.paths import batch_path
from ..places.place import Package, Sent
from ..recipe import Step
from ..runner.work import PageWork, TaskSpec
from ..stages import Stage
from .engine import Engine
from .look import BatchView
from .needs import Needs
from .spending import LiveBudget
from .usual import usual_of

__all__ = ["LibraryAnswers", "sent_record", "sent_task", "task_spec"]


@dataclass(frozen=True)
class _Work:
    """What is to be known of work on a batch: `steps` by page, and the hashes and versions."""

    source: str
    recipe: str
    batch: str
    steps: tuple[Step, ...]
    chains: Mapping[str, tuple[str, ...]]
    shas: Mapping[str, str]
    fingerprints: Mapping[str, str]


def task_spec(
    engine: Engine, stage: Stage, view: BatchView, work: Mapping[str, tuple[str, ...]]
) -> TaskSpec:
    """The work for its place: one page of each hash, with the landed values its steps need."""
    wanted = _Work(
        source=view.source,
        recipe=view.recipe.name,
        batch=view.batch,
        steps=stage.steps,
        chains=work,
        shas={page_id: view.pages[page_id].sha256 for page_id in work},
        fingerprints={name: step.fingerprint for name, step in view.steps.items()},
    )
    pages = tuple(_pages(engine, wanted, view.pages, fetch=True))
    spec = _task_spec(engine, view.source, view.batch, stage.steps, pages)
    # At a provider the place is not opened: an estimate needs none of its keys.
    if stage.steps[0].provider is not None:
        return replace(spec, usual=usual_of(engine, stage, view))
    if engine.place(stage.place).ends_here(None):
        return spec
    return replace(
        spec,
        pages=_with_failures(engine, view, spec.pages),
        seconds_per_page=_seconds_per_page(engine, stage),
    )


def _with_failures(
    engine: Engine, view: BatchView, pages: Sequence[PageWork]
) -> tuple[PageWork, ...]:
    """The pages with what became of them before, so that they go with more time or memory."""
    failed = engine.ledger.holds.attempts_of(view.recipe.name, view.source, view.batch)
    if not failed:
        return tuple(pages)
    told: list[PageWork] = []
    for page in pages:
        first = page.steps[0]
        row = failed.get((page.page_id, first, view.steps[first].keys[page.page_id]))
        told.append(
            page if row is None else replace(page, attempts=row.attempts, failed=row.reason)
        )
    return tuple(told)


def _seconds_per_page(engine: Engine, stage: Stage) -> float | None:
    """What a page took there lately, all steps of the stage together."""
    facts = engine.ledger.tasks.last_report(stage.recipe.name, stage.name, stage.place)
    if facts is None:
        return None
    seconds = 0.0
    for step in facts.get("steps", ()):
        worked = step["landed"] + step["failed"]
        seconds += step["seconds"]["total"] / worked if worked else 0.0
    return seconds or None


def sent_record(
    view: BatchView,
    steps: tuple[str, ...],
    work: Mapping[str, tuple[str, ...]],
    package: Package,
) -> dict[str, Any]:
    """What a task must remember so that its answers land as they were asked for.

    `chains` are the steps of those pages that do not go through all of them, `expected` what was
    counted of its questions, by which the next ones are counted better.
    """
    needs = {need for step in steps for need in view.steps[step].step.needs}
    record: dict[str, Any] = {
        "steps": [asdict(view.steps[step].step) for step in steps],
        "needs": {need: view.steps[need].fingerprint for need in sorted(needs)},
        "group": dict(package.group),
    }
    if package.expected is not None and package.expected.calls:
        record["expected"] = {
            "calls": package.expected.calls,
            "tokens_in": round(package.expected.tokens_in, 1),
        }
    if chains := {page: list(chain) for page, chain in work.items() if chain != steps}:
        record["chains"] = chains
    return record


def sent_task(engine: Engine, task: TaskRow) -> Sent:
    """The task as it was sent, whatever the recipe says by now."""
    assert task.remote_id is not None
    record = task.sent or {"steps": [], "needs": {}, "group": {}}
    return Sent(
        name=task.name,
        remote_id=task.remote_id,
        load=partial(_sent_spec, engine, task, record),
        answers=LibraryAnswers(engine, task),
        calls=task.calls or {},
        group=record["group"],
        sent_at=task.sent_at,
        stopped=task.stopped,
        budget=LiveBudget(engine, task) if engine.project.has_caps else None,
    )


def _sent_spec(engine: Engine, task: TaskRow, record: Mapping[str, Any]) -> TaskSpec:
    steps = tuple(_step(values) for values in record["steps"])
    pages = _LaterPages(partial(_sent_pages, engine, task, record, steps))
    return _task_spec(engine, task.source, task.batch, steps, pages)


def _sent_pages(
    engine: Engine, task: TaskRow, record: Mapping[str, Any], steps: tuple[Step, ...]
) -> list[PageWork]:
    rows = engine.ledger.pages.in_batch(task.source, task.batch)
    pages = {row.page_id: row for row in rows}
    chains = record.get("chains", {})
    all_steps = tuple(task.fingerprints)
    work = _Work(
        source=task.source,
        recipe=task.recipe,
        batch=task.batch,
        steps=steps,
        chains={
            page: tuple(chains.get(page, all_steps)) for page in task.calls or {} if page in pages
        },
        shas=dict(task.pages),
        fingerprints={**record["needs"], **task.fingerprints},
    )
    return _pages(engine, work, pages, fetch=False)


class _LaterPages(Sequence[PageWork]):
    """The pages of a task, read when they are first asked for: most answers are read without."""

    def __init__(self, read: Callable[[], list[PageWork]]) -> None:
        self._read = read

    @cached_property
    def _pages(self) -> list[PageWork]:
        return self._read()

    @overload
    def __getitem__(self, index: int) -> PageWork: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PageWork]: ...

    def __getitem__(self, index: int | slice) -> PageWork | Sequence[PageWork]:
        return self._pages[index]

    def __len__(self) -> int:
        return len(self._pages)


@dataclass(frozen=True)
class LibraryAnswers:
    """The answers of a task, kept in the library beside its results."""

    engine: Engine
    task: TaskRow

    def keep(self, lines: Iterable[bytes]) -> None:
        """Keeps the lines whole, or not at all."""
        task = self.task
        self.engine.library.keep_answers(task.recipe, self._step, task.batch, task.name, lines)

    def kept(self) -> bool:
        """Whether lines were kept."""
        task = self.task
        return self.engine.library.has_answers(task.recipe, self._step, task.batch, task.name)

    def lines(self) -> Generator[bytes]:
        """The lines that were kept; none when none were."""
        task = self.task
        return self.engine.library.answers(task.recipe, self._step, task.batch, task.name)

    @property
    def _step(self) -> str:
        return next(iter(self.task.fingerprints))


def _step(values: Mapping[str, Any]) -> Step:
    fields: dict[str, Any] = {**values, "needs": tuple(values["needs"])}
    return Step(**fields)


def _pages(
    engine: Engine, work: _Work, rows: Mapping[str, BatchPage], *, fetch: bool
) -> list[PageWork]:
    """`fetch`: the work is to be sent, so that what no other process can read is read here."""
    needs = Needs(
        engine, work.recipe, work.batch, work.steps, work.chains, work.shas, work.fingerprints
    )
    # Other processes are given the values themselves; a provider is asked about one page at a time.
    whole = fetch and any(step.provider is None for step in work.steps)
    reader = engine.source(work.source).reader
    read = reader.read if reader.in_process and fetch else None
    pages: list[PageWork] = []
    seen: set[str] = set()
    for page_id, chain in work.chains.items():
        sha256 = work.shas[page_id]
        if sha256 in seen:
            continue
        seen.add(sha256)
        row = rows[page_id]
        known = dict(needs.of(page_id)) if whole else needs.of(page_id)
        data = None if read is None else read(row.file)
        pages.append(PageWork(page_id, sha256, row.file, row.frame, chain, known, data))
    return pages


def _task_spec(
    engine: Engine, source: str, batch: str, steps: tuple[Step, ...], pages: Sequence[PageWork]
) -> TaskSpec:
    return TaskSpec(
        steps=steps,
        pages=pages,
        reader=engine.source(source).reader,
        import_path=str(engine.project.folder),
        max_pixels=engine.project.limits.max_pixels,
        page_timeout=engine.project.limits.page_timeout,
        folder=batch_path(source, batch),
    )
