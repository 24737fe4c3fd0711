"""What a person can decide, as Dagster jobs: in the launchpad and by GraphQL as by command."""

# No postponed annotations here: Dagster reads the types of configs and contexts as they stand.
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field

from ..engine.by_hand import give_value, retry, set_aside, value_from
from ..engine.controls import Decision, follow_stop, hurry, pause, resume, scope_of, stop
from ..engine.engine import Engine, open_engine
from ..engine.stopped import stop_words
from ..errors import HeldBack, RecipesError
from ..ledger.controls import Scope
from ..project import Project
from .run_tags import STOPPING, WORDS, YES, tag_words

__all__ = ["Part", "Release", "Retry", "control_jobs"]


class Part(dg.Config):
    """A recipe, or the part of it in a folder, of a batch or of a step."""

    recipe: str = Field(description="The recipe's name.")
    folder: str = Field(default="", description="Only this folder and those below it.")
    batch: str = Field(default="", description="Only this batch, FOLDER/0001.")
    step: str = Field(default="", description="Only this step.")
    reason: str = Field(default="", description="Why; shown with what it holds back.")


class Retry(Part):
    """Held pages that are to be tried again."""

    page: str = Field(default="", description="Only this page.")


class Release(dg.Config):
    """A held page that is set aside, or gets a value by hand."""

    recipe: str = Field(description="The recipe's name.")
    page: str = Field(description="The page's path below the source.")
    step: str = Field(default="", description="The step; else the first that holds it.")
    reason: str = Field(description="Why; kept with the page.")
    value: str = Field(
        default="",
        description="The result by hand, as JSON; words that are no JSON become a text.",
    )


Decide = Callable[[Engine, Scope, str, str], Decision]


def control_jobs(project: Project) -> list[dg.JobDefinition]:
    """`pause`, `resume`, `stop`, `now`, `retry` and `release`."""
    return [
        _job(project, "pause", "Send nothing more; what is out goes on and lands.", pause),
        _job(project, "resume", "Let what was paused or stopped go on.", _resume),
        _stop_job(project),
        _job(project, "now", "Wait for no batch: the rest goes by plain calls.", hurry),
        _retry_job(project),
        _release_job(project),
    ]


def _job(project: Project, name: str, about: str, decide: Decide) -> dg.JobDefinition:
    @dg.op(name=f"recipes_{name}", description=about)
    def work(context: dg.OpExecutionContext, config: Part) -> None:
        with open_engine(project) as engine, _in_words():
            scope = scope_of(engine, config.recipe, config.folder, config.batch, config.step)
            _tell(context, decide(engine, scope, config.reason, _who(context)))

    return _one_op(name, about, work, Part)


def _resume(engine: Engine, scope: Scope, reason: str, by: str) -> Decision:  # noqa: ARG001
    return resume(engine, scope)


def _stop_job(project: Project) -> dg.JobDefinition:
    """Asks the places and lands what has ended by now; the adopt sensor follows the others and
    says in this run's words when all have ended.
    """
    about = "End what is out and send nothing more."

    @dg.op(name="recipes_stop", description=about)
    def work(context: dg.OpExecutionContext, config: Part) -> None:
        with open_engine(project) as engine, _in_words():
            scope = scope_of(engine, config.recipe, config.folder, config.batch, config.step)
            decided = stop(engine, scope, config.reason, _who(context))
            at_rest = follow_stop(engine, scope)
            words = f"{stop_words(engine, scope)}."
            _tell(context, Decision(words, decided.asked, decided.unasked))
            if not at_rest:
                context.instance.add_run_tags(context.run_id, {STOPPING: YES})

    return _one_op("stop", about, work, Part)


def _retry_job(project: Project) -> dg.JobDefinition:
    about = "Let held pages be tried again by the next run."

    @dg.op(name="recipes_retry", description=about)
    def work(context: dg.OpExecutionContext, config: Retry) -> None:
        with open_engine(project) as engine, _in_words():
            scope = scope_of(engine, config.recipe, config.folder, config.batch, config.step)
            recipe = project.recipe(config.recipe)
            batches = [
                each
                for each in engine.ledger.pages.batches(recipe.source, scope.folder or None)
                if scope.batch in ("", each.key)
            ]
            done = retry(
                engine,
                recipe,
                batches,
                whole=not scope.folder and not scope.batch,
                step=scope.step or None,
                page_id=config.page or None,
            )
            words = f"{done.cleared} holds cleared; {done.unreadable} pages cannot be read."
            _tell(context, Decision(words))

    return _one_op("retry", about, work, Retry)


def _release_job(project: Project) -> dg.JobDefinition:
    about = "Set a held page aside for good, or give it a value by hand."

    @dg.op(name="recipes_release", description=about)
    def work(context: dg.OpExecutionContext, config: Release) -> None:
        with open_engine(project) as engine, _in_words():
            recipe, step = project.recipe(config.recipe), config.step or None
            if not config.reason.strip():
                raise HeldBack("Say why, in the config's `reason`: it is kept with the page.")
            told = (config.reason, _who(context))
            if config.value:
                value = value_from(config.value)
                words = give_value(engine, recipe, config.page, step, value, *told)
            else:
                words = set_aside(engine, recipe, config.page, step, *told)
            _tell(context, Decision(words))

    return _one_op("release", about, work, Release)


def _one_op(name: str, about: str, work: Any, config: type[dg.Config]) -> dg.JobDefinition:
    """The launchpad shows all that may be said, in this order; an empty recipe is refused."""
    blank = dict.fromkeys(config.model_fields, "")

    @dg.job(
        name=name,
        description=about,
        executor_def=dg.in_process_executor,
        config={"ops": {f"recipes_{name}": {"config": blank}}},
    )
    def decision() -> None:
        work()

    return decision


@contextmanager
def _in_words() -> Generator[None]:
    """A decision that is refused fails its run in a sentence."""
    try:
        yield
    except RecipesError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from None


def _who(context: dg.OpExecutionContext) -> str:
    return context.run.tags.get("user", f"run {context.run_id[:8]}")


def _tell(context: dg.OpExecutionContext, decided: Decision) -> None:
    for words in (decided.words, *decided.unasked):
        context.log.info(words)
    context.instance.add_run_tags(context.run_id, {WORDS: tag_words(decided.words)})
