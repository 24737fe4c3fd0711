"""Send: what has neither landed nor is held nor open goes to the stage's place, once."""

from __future__ import annotations

from ..ledger.tasks import TaskRow
from ..places.place import Place
from ..recipe import canonical_json, digest
from ..runner.work import PageWork, TaskSpec
from ..stages import Stage
from .engine import Engine
from .look import BatchView, PageState
from .reuse import reuse_results

__all__ = ["plan_work", "send", "submit"]


def plan_work(view: BatchView, steps: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The steps that can be run now on each page, in order: page_id to step names. Pure.

    A step that waits for another one of the same list rides behind it.
    """
    work: dict[str, tuple[str, ...]] = {}
    for page_id in view.pages:
        chain: list[str] = []
        for step in steps:
            state = view.steps[step].states[page_id]
            if state is PageState.TODO or (
                state is PageState.WAITING
                and all(
                    need in chain or view.steps[need].states[page_id] is PageState.LANDED
                    for need in view.steps[step].step.needs
                )
            ):
                chain.append(step)
        if chain:
            work[page_id] = tuple(chain)
    return work


def send(engine: Engine, stage: Stage, view: BatchView, steps: tuple[str, ...]) -> TaskRow | None:
    """Sends what can go of the batch as one task; None when nothing can, or another has it.

    Written down before it is asked for, and looked up by name before it is asked for again: a
    kill at any moment leaves a row from which the next look goes on. What a rival landed since
    `view` was taken is seen once the claims are ours: then the task is dropped and None given, so
    that the caller looks again.
    """
    work = plan_work(view, steps)
    claims = {view.steps[step].keys[page_id] for page_id, chain in work.items() for step in chain}
    free = engine.ledger.tasks.free_claims(claims)
    work = {
        page_id: chain
        for page_id, chain in work.items()
        if all(view.steps[step].keys[page_id] in free for step in chain)
    }
    if not work:
        return None
    attempt = engine.ledger.tasks.last_attempt(view.recipe.name, stage.name, view.batch) + 1
    chosen = tuple(step for step in steps if any(step in chain for chain in work.values()))
    task = engine.ledger.tasks.prepare(
        name=_task_name(stage, view, work, attempt),
        recipe=view.recipe.name,
        stage=stage.name,
        source=view.source,
        batch=view.batch,
        place=stage.place,
        attempt=attempt,
        fingerprints={step: view.steps[step].fingerprint for step in chosen},
        pages=[(page_id, view.pages[page_id].sha256) for page_id in work],
        claims={
            view.steps[step].keys[page_id] for page_id, chain in work.items() for step in chain
        },
        owner=engine.owner,
    )
    if task is None:
        return None
    if _landed_meanwhile(engine, view, work):
        engine.ledger.tasks.dropped(task.id, "a rival landed some of it before it was sent")
        return None
    submit(engine, engine.place(stage.place), task, _spec(engine, stage, view, work, task.name))
    return task


def _landed_meanwhile(engine: Engine, view: BatchView, work: dict[str, tuple[str, ...]]) -> bool:
    """Whether a result that is to be computed is in the library by now, here or elsewhere.

    A rival gives up its claims only when all has landed, so nothing can land unseen after this.
    """
    steps = tuple(step for step in view.steps if any(step in chain for chain in work.values()))
    for step in steps:
        landed = engine.library.landed(view.recipe.name, step, view.batch)
        keys = view.steps[step].keys
        if any(
            (page_id, keys[page_id]) in landed for page_id, chain in work.items() if step in chain
        ):
            return True
    return reuse_results(engine, view, steps) > 0


def submit(engine: Engine, place: Place, task: TaskRow, spec: TaskSpec) -> None:
    """Asks the place, unless it already has a task of that name, and writes the id down."""
    remote_id = place.find(task.name) or place.submit(spec)
    engine.ledger.tasks.sent(task.id, remote_id)


def _task_name(
    stage: Stage, view: BatchView, work: dict[str, tuple[str, ...]], attempt: int
) -> str:
    """Names the task by what it will do, so that two processes that plan alike name it alike."""
    keys = sorted(
        view.steps[step].keys[page_id] for page_id, chain in work.items() for step in chain
    )
    parts = [view.recipe.name, stage.name, view.source, view.batch, keys, attempt]
    return f"{stage.name}-{digest(canonical_json(parts))}"


def _spec(
    engine: Engine, stage: Stage, view: BatchView, work: dict[str, tuple[str, ...]], name: str
) -> TaskSpec:
    """The task for its place: one page of each hash, with the landed values its steps need."""
    needs = _landed_needs(engine, view, work)
    reader = engine.source(view.source).reader
    pages: list[PageWork] = []
    seen: set[str] = set()
    for page_id, chain in work.items():
        page = view.pages[page_id]
        if page.sha256 in seen:
            continue
        seen.add(page.sha256)
        pages.append(
            PageWork(
                page_id=page_id,
                sha256=page.sha256,
                file=page.file,
                frame=page.frame,
                steps=chain,
                needs=needs.get(page_id, {}),
                data=reader.read(page.file) if reader.in_process else None,
            )
        )
    return TaskSpec(
        name=name,
        steps=stage.steps,
        pages=tuple(pages),
        reader=reader,
        import_path=str(engine.project.folder),
        max_pixels=engine.project.limits.max_pixels,
    )


def _landed_needs(
    engine: Engine, view: BatchView, work: dict[str, tuple[str, ...]]
) -> dict[str, dict[str, object]]:
    wanted: dict[str, set[tuple[str, str]]] = {}
    for page_id, chain in work.items():
        for step in chain:
            for need in view.steps[step].step.needs:
                if need not in chain:
                    wanted.setdefault(need, set()).add((page_id, view.steps[need].keys[page_id]))
    values: dict[str, dict[str, object]] = {}
    for need, pairs in wanted.items():
        found = engine.library.values(view.recipe.name, need, view.batch, pairs)
        for (page_id, _), value in found.items():
            values.setdefault(page_id, {})[need] = value
    return values
