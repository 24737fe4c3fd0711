"""The assets: a source's pages, and one multi-asset per stage of each recipe."""

# No postponed annotations here: Dagster reads the context's type as it stands.
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import dagster as dg

from ..engine.advance import run_stage
from ..engine.cancelled import take_up
from ..engine.engine import open_engine
from ..engine.look import BatchView, HeldPage, PageState
from ..errors import HeldBack, RecipesError
from ..places.turn import local_turn
from ..project import Project
from ..recipe import LOCAL, Recipe, Step
from ..stages import Stage, stages_of
from ..steps.registry import load_operation
from .automation import condition_of
from .consenting import about_consent, config_of, may_leave
from .deferral import Deferral
from .events import (
    CHECK,
    check_result,
    held_table,
    materialize_result,
    report_partition,
    step_key,
)
from .heartbeat import Heartbeat
from .pages_events import batches_of, pages_key
from .reports import replayer
from .run_tags import STOPPED, is_by_person, is_now, tag_words

__all__ = ["pages_spec", "stage_assets"]

COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("page_id", "string", description="path below the source, # page in a file"),
        dg.TableColumn("key", "string", description="what makes a result the same result"),
        dg.TableColumn("value", "json", description="the step's result"),
        dg.TableColumn("model", "string"),
        dg.TableColumn("tokens_in", "int"),
        dg.TableColumn("tokens_out", "int"),
        dg.TableColumn("cost_usd", "decimal", description="US dollars"),
        dg.TableColumn("seconds", "float"),
        dg.TableColumn("task", "string", description="the task that gave it"),
        dg.TableColumn("landed_at", "timestamp", description="UTC"),
    ]
)


def pages_spec(source: str, root: str) -> dg.AssetSpec:
    """The pages of a source: materialized by discovery, never by a run."""
    return dg.AssetSpec(
        key=pages_key(source),
        description=f"Page images and documents found under {root}, cut into page batches.",
        group_name=f"source_{source}",
        kinds={"file"},
        partitions_def=batches_of(source),
    )


def stage_asset(project: Project, stage: Stage) -> dg.AssetsDefinition:
    """The multi-asset of a stage: one asset a step, each materialized when its pages landed."""
    recipe = stage.recipe
    partitions = batches_of(recipe.source)
    checks = [
        dg.AssetCheckSpec(
            name=CHECK,
            asset=step_key(recipe.name, step.name),
            description="Every page of the batch has landed; names those that wait and why.",
            partitions_def=partitions,
        )
        for step in stage.steps
    ]

    @dg.multi_asset(
        name=f"{recipe.name}__{stage.name}",
        specs=[_step_spec(project, recipe, step) for step in stage.steps],
        check_specs=checks,
        partitions_def=partitions,
        can_subset=True,
        pool=_pool(stage),
        config_schema=config_of(stage),
        op_tags={"recipes/place": stage.place},
    )
    def run(
        context: dg.AssetExecutionContext,
    ) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
        try:
            yield from _run(context, project, stage)
        except RecipesError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error

    return run


def _pool(stage: Stage) -> str | None:
    """The pool whose limit keeps runs of the stage in the queue.

    A run counts for the pools of all its stages from its first moment on. In a recipe with steps
    elsewhere that would let one run at a time send its pages, and while it waited for them no
    other run could do its steps here. So there the stages take turns inside their runs, by
    `local_turn`; places elsewhere have slots of their own.
    """
    if any(step.place != LOCAL for step in stage.recipe.steps):
        return None
    return LOCAL


def _step_spec(project: Project, recipe: Recipe, step: Step) -> dg.AssetSpec:
    deps = [step_key(recipe.name, need) for need in step.needs] or [pages_key(recipe.source)]
    operation = load_operation(step.run, step.provider is not None)
    return dg.AssetSpec(
        key=step_key(recipe.name, step.name),
        deps=deps,
        skippable=True,
        description=about_consent(
            project,
            recipe,
            step,
            operation.about or f"Step {step.name} of recipe {recipe.name}: {step.run}",
        ),
        group_name=recipe.name,
        kinds={project.kind_of(step.place), *operation.kinds},
        code_version=recipe.fingerprint(step.name),
        automation_condition=condition_of(project, recipe, step),
        metadata={"dagster/column_schema": COLUMNS, **_code_reference(recipe)},
    )


def _code_reference(recipe: Recipe) -> dict[str, Any]:
    if recipe.path is None:
        return {}
    return {
        "dagster/code_references": dg.CodeReferencesMetadataValue(
            code_references=[
                dg.LocalFileCodeReference(
                    file_path=str(Path(recipe.path).resolve()),
                    line_number=1,
                    label=f"recipe {recipe.name}",
                )
            ]
        )
    }


def _run(
    context: dg.AssetExecutionContext, project: Project, stage: Stage
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    recipe = stage.recipe
    wanted = {key.path[-1] for key in context.selected_asset_keys}
    steps = [step.name for step in stage.steps if step.name in wanted]
    checked = {key.asset_key.path[-1] for key in context.selected_asset_check_keys}
    with (
        open_engine(project, pages_may_leave=may_leave(context)) as engine,
        Heartbeat(engine, context.run.run_id),
        _turn(context, project, stage),
    ):
        engine.on_report = replayer(context.log)
        if is_by_person(context.run.tags):
            take_up(engine, recipe.name, [context.partition_key], steps)
        with _held_back(context):
            view = run_stage(
                engine,
                stage,
                context.partition_key,
                steps,
                on_landed=_logger(context, stage),
                poll_seconds=project.limits.poll_seconds,
                now=is_now(context.run.tags),
                defer=_deferral(context, project, stage),
            )
        if view is None:  # a continuation is in the queue: this run ends green, with no outputs
            return
        missed: list[str] = []
        for step in steps:
            report = report_partition(engine, view, step)
            if report.complete:
                yield materialize_result(report, checked=step in checked)
            else:
                missed.append(step)
                if step in checked:
                    yield check_result(report)
    if missed:
        raise dg.Failure(
            description=_why_not(recipe, view, missed),
            metadata={"held": dg.MetadataValue.md(held_table(_held(view, missed)))},
            allow_retries=False,
        )


@contextmanager
def _held_back(context: dg.AssetExecutionContext) -> Generator[None]:
    """Ends the run in a person's words when a person stopped or paused what it is to do."""
    try:
        yield
    except HeldBack as error:
        words = str(error)
        context.instance.add_run_tags(context.run.run_id, {STOPPED: tag_words(words)})
        raise dg.Failure(description=words, allow_retries=False) from None


def _turn(
    context: dg.AssetExecutionContext, project: Project, stage: Stage
) -> AbstractContextManager[None]:
    if stage.place != LOCAL:
        return nullcontext()
    words = "Another run works on this machine; this one's local steps wait for their turn."
    return local_turn(project.folder / ".recipes", lambda: context.log.info(words))


def _deferral(context: dg.AssetExecutionContext, project: Project, stage: Stage) -> Deferral:
    return Deferral(
        context.instance,
        context.run,
        stage.place,
        context.partition_key,
        context.log,
        inline=project.limits.inline_wait,
    )


def _logger(context: dg.AssetExecutionContext, stage: Stage) -> Callable[[int], None]:
    def log(landed: int) -> None:
        context.log.info("%d results of stage %s landed.", landed, stage.name)

    return log


def _held(view: BatchView, steps: Sequence[str]) -> list[HeldPage]:
    """Each held page once for each step that holds it by itself."""
    seen: dict[tuple[str, str], HeldPage] = {}
    for step in steps:
        for page in view.steps[step].held:
            seen.setdefault((page.page_id, page.cause), page)
    return list(seen.values())


def _why_not(recipe: Recipe, view: BatchView, steps: Sequence[str]) -> str:
    """Why the partition is not materialized, and what to do."""
    waiting = {
        need
        for step in steps
        for need in view.steps[step].step.needs
        if view.steps[step].count(PageState.WAITING)
    }
    if waiting - set(steps):
        return (
            f"Batch {view.batch}: {', '.join(steps)} cannot go on before "
            f"{', '.join(sorted(waiting - set(steps)))} has landed. Materialize that step first."
        )
    held = _held(view, steps)
    at = view.steps[steps[0]]
    if not view.pages:
        return (
            f"Batch {view.batch}: none of its pages is there any more. "
            f"Put them back and run: recipes discover"
        )
    return (
        f"Batch {view.batch} is not materialized at {', '.join(steps)}: {at.landed} of {at.pages} "
        f"pages landed and {len(held)} are held (max_held {recipe.max_held:g}). "
        f"Mend the pages, or take them out, then run: recipes retry {recipe.name}\n\n"
        f"{held_table(held)}"
    )


def stage_assets(project: Project) -> list[dg.AssetsDefinition]:
    """All multi-assets of the project."""
    return [
        stage_asset(project, stage)
        for recipe in project.recipes.values()
        for stage in stages_of(recipe)
    ]
