"""The sheet: what a run would send, stage by stage, how long it takes and what it costs.

It is made before anything is sent, and making it sends nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from statistics import median

from ..job_settings import HfJobsSettings, JobSettings
from ..place_settings import BedrockSettings, CloudSettings
from ..places.hf_jobs import prices as hf_prices
from ..places.task_folders.task_sizes import FIRST_SECONDS
from ..providers.registry import open_provider
from ..recipe import LOCAL, Recipe
from .consent import missing_consent
from .engine import Engine
from .plan import StagePlan, plan_recipe
from .plan_samples import Samples
from .token_estimates import Money, PageEstimate, Spread, estimate_pages

__all__ = ["Scope", "Sheet", "SheetLine", "sheet_of"]


@dataclass(frozen=True)
class Scope:
    """The part of a recipe that is asked about; empty means all.

    `now`: a person waits for it, so that nothing goes as a batch.
    """

    folder: str | None = None
    steps: tuple[str, ...] = ()
    batches: tuple[str, ...] = ()
    now: bool = False


@dataclass(frozen=True)
class SheetLine:
    """One stage.

    `pages` are to be sent, in `batches` page batches, as `tasks`; `reused` are copies that cost
    nothing. `seconds` is how long it takes there, `local_seconds` how long on this machine, both
    going by what has landed before. `tokens_in` and `tokens_out` are those of all pages. `batch`
    and `plain` are the prices if all went that way, `usd` is that of the way it will go; None where
    there is none or nobody knows it. `sampled` pages were looked at. `words` say what was assumed.
    """

    stage: str
    steps: tuple[str, ...]
    place: str
    model: str | None
    batches: int
    pages: int
    reused: int
    tasks: int
    seconds: float | None = None
    local_seconds: float | None = None
    tokens_in: Spread | None = None
    tokens_out: Spread | None = None
    batch: Money | None = None
    plain: Money | None = None
    usd: Money | None = None
    sampled: int = 0
    words: tuple[str, ...] = ()

    @property
    def elsewhere(self) -> bool:
        """Whether pages leave this machine."""
        return self.place != LOCAL and self.pages > 0


@dataclass(frozen=True)
class Sheet:
    """The stages of a recipe, and the plans that they were made from."""

    recipe: str
    scope: Scope
    lines: tuple[SheetLine, ...]
    plans: tuple[StagePlan, ...] = field(default=(), repr=False)

    @property
    def pages(self) -> int:
        """Pages to be worked on, each counted once a stage."""
        return sum(line.pages for line in self.lines)

    @property
    def usd(self) -> Money | None:
        """The price of all stages that have one; None when none has."""
        total: Money | None = None
        for line in self.lines:
            if line.usd is not None:
                total = line.usd if total is None else total.plus(line.usd)
        return total

    @property
    def unpriced(self) -> list[str]:
        """Stages at a place that costs money of which nobody knows the price."""
        return [
            line.stage
            for line in self.lines
            if line.elsewhere and line.usd is None and line.model is not None
        ]


def sheet_of(engine: Engine, recipe: Recipe, scope: Scope | None = None) -> Sheet:
    """The sheet of a recipe, over all of its source or a part.

    Looks at about twenty pages of each step at a provider, and at the rows of eight batches.
    """
    scope = scope or Scope()
    samples = Samples(recipe)
    plans = plan_recipe(engine, recipe, scope.folder, batches=set(scope.batches), samples=samples)
    lines: list[SheetLine] = []
    for plan in plans:
        steps = tuple(name for name in plan.steps if not scope.steps or name in scope.steps)
        if not steps:
            continue
        line = _line(engine, plan, steps)
        settings = engine.project.places.get(line.place)
        if isinstance(settings, CloudSettings):
            line = _at_provider(engine, plan, line, settings, samples, now=scope.now)
        elif isinstance(settings, JobSettings):
            line = _as_jobs(plan, line, settings)
        lines.append(_with_consent(engine, recipe, line))
    return Sheet(recipe.name, scope, tuple(lines), tuple(plans))


def _with_consent(engine: Engine, recipe: Recipe, line: SheetLine) -> SheetLine:
    yes = engine.pages_may_leave
    missing = missing_consent(engine.project, recipe, line.place, request=yes)
    if missing is None or not line.pages:
        return line
    return replace(line, words=(*line.words, missing.rstrip(".")))


def _line(engine: Engine, plan: StagePlan, steps: Sequence[str]) -> SheetLine:
    at = [plan.steps[name] for name in steps]
    most = max(at, key=lambda step: step.computed)
    here = plan.seconds(engine.project.local.processes, steps)
    local = plan.stage.steps[0].provider is None
    return SheetLine(
        stage=plan.stage.name,
        steps=tuple(steps),
        place=plan.stage.place,
        model=plan.stage.steps[0].model,
        batches=most.sizes.total(),
        pages=most.computed,
        reused=max(step.reused for step in at),
        tasks=most.sizes.total(),
        seconds=here if plan.stage.place == LOCAL else None,
        local_seconds=here if local else None,
    )


def _at_provider(
    engine: Engine,
    plan: StagePlan,
    line: SheetLine,
    settings: CloudSettings,
    samples: Samples,
    *,
    now: bool,
) -> SheetLine:
    (step,) = plan.stage.steps
    line = replace(line, local_seconds=None)
    if not line.pages:
        return line
    page = estimate_pages(engine, plan.stage, samples.steps[step.name])
    ways = _ways(plan.steps[step.name].sizes, line.place, settings, page, now=now)
    usd = None
    if page.batch is not None and page.plain is not None:
        usd = page.batch.times(ways.batched).plus(page.plain.times(ways.called))
    return replace(
        line,
        tasks=ways.tasks,
        seconds=_waiting(engine, plan, ways, settings),
        tokens_in=_all(page.tokens_in, line.pages),
        tokens_out=_all(page.tokens_out, line.pages),
        batch=None if page.batch is None else page.batch.times(line.pages),
        plain=None if page.plain is None else page.plain.times(line.pages),
        usd=usd,
        sampled=page.sampled,
        words=(*_way_words(ways, settings), *page.words),
    )


@dataclass
class _Ways:
    """Pages that go in provider batches and by plain calls, and as how many tasks."""

    batched: int = 0
    called: int = 0
    tasks: int = 0
    provider_batches: int = 0


def _ways(
    sizes: Counter[int], place: str, settings: CloudSettings, page: PageEstimate, *, now: bool
) -> _Ways:
    """How the pages go, page batch by page batch; see `CloudPlace.takes_slot`."""
    limits = open_provider(place).limits
    least = settings.min_requests if isinstance(settings, BedrockSettings) else limits.min_requests
    requests = min(limits.max_requests, settings.max_requests or limits.max_requests)
    own = limits.max_bytes if settings.max_batch_mb is None else settings.max_batch_mb * 1e6
    room = min(limits.max_bytes, own) - limits.overhead
    if page.line_bytes:
        requests = max(1, min(requests, int(room / page.line_bytes)))
    ways = _Ways()
    for size, count in sizes.items():
        parts = math.ceil(size / requests)
        ways.tasks += count * parts
        if not now and size >= max(settings.batch_from, least):
            ways.batched += size * count
            ways.provider_batches += count * parts
        else:
            ways.called += size * count
    return ways


def _waiting(engine: Engine, plan: StagePlan, ways: _Ways, settings: CloudSettings) -> float | None:
    """How long the batches take, as many at once as may be open, going by earlier ones."""
    stage = plan.stage
    before = engine.ledger.times.of_batches(stage.recipe.name, stage.name, stage.place)
    if not before or not ways.provider_batches:
        return None
    return median(before) * math.ceil(ways.provider_batches / settings.max_open)


def _way_words(ways: _Ways, settings: CloudSettings) -> list[str]:
    words: list[str] = []
    if ways.batched:
        words.append(f"a batch may take up to {settings.timeout_hours:g} hours")
    if ways.batched and ways.called:
        words.append(f"{ways.called:,} pages go by plain calls, in batches of too few pages")
    elif ways.called:
        words.append("all pages go by plain calls, at the full price")
    return words


def _as_jobs(plan: StagePlan, line: SheetLine, settings: JobSettings) -> SheetLine:
    if not line.pages:
        return line
    work = plan.seconds(1, line.steps)
    each = FIRST_SECONDS if work is None else work / line.pages
    aim = getattr(settings, "aim_seconds", settings.task_minutes * 60)
    most = settings.pages_per_task or max(1, int(aim / max(each, 1e-9)))
    sizes = max((plan.steps[name].sizes for name in line.steps), key=Counter[int].total)
    tasks = sum(count * math.ceil(size / most) for size, count in sizes.items())
    together = min(tasks, getattr(settings, "parallel", None) or tasks)
    if isinstance(settings, HfJobsSettings):
        together = min(tasks, settings.max_open)
    usd, words = _machine_price(settings, work, tasks)
    return replace(
        line,
        tasks=tasks,
        seconds=None if work is None else work / together,
        usd=usd,
        words=("without the time in its queue", *words),
    )


def _machine_price(
    settings: JobSettings, work: float | None, tasks: int
) -> tuple[Money | None, tuple[str, ...]]:
    """What the machines cost that are paid by the minute; None for those that are not."""
    if not isinstance(settings, HfJobsSettings):
        return None, ()
    price = hf_prices.price_of(settings.flavor, None)
    if price.basis == hf_prices.UNKNOWN:
        return None, (f"no price of the machine {settings.flavor} is known",)
    if work is None:
        return None, ("the price is known when something of these steps has landed",)
    # A minute that was begun counts whole, and a job starts before its first page.
    minutes = Decimal(math.ceil(work / 60))
    return Money(
        price.usd * minutes, price.usd * (minutes + tasks), price.usd * (2 * minutes + 3 * tasks)
    ), ()


def _all(page: Spread | None, pages: int) -> Spread | None:
    return page and Spread(page.low * pages, page.mid * pages, page.high * pages)
