"""The questions of a few pages, made as they would be sent. Nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ..errors import ConfigError, StepError
from ..places.cloud.questions import Asker
from ..places.decoders import Decoders
from ..providers.provider import Call
from ..providers.recording import Recorder
from ..recipe import Recipe
from ..runner.work import PageWork
from ..stages import Stage
from ..steps.registry import load_operation
from .cloud import open_asking
from .engine import Engine
from .look import look
from .plan_samples import SampledPage
from .work import task_spec

__all__ = ["STAND_IN", "Asked", "ask_pages"]

STAND_IN = 2400
"""Characters of a page whose text nobody has read yet: about those of a typewritten page."""

_WORDS = "Received of the bearer the sum of four pounds two shillings, being the rent of the mill. "


@dataclass
class Asked:
    """What became of the pages: their calls by (batch, page_id), and how many need none.

    `sizes` are the bytes of the calls as lines of a batch. `failed` counts the reasons of pages
    that cannot be asked about. `assumed` are needed steps whose text was made up.
    """

    calls: dict[tuple[str, str], Call] = field(default_factory=dict[tuple[str, str], Call])
    sizes: list[int] = field(default_factory=list[int])
    ready: int = 0
    failed: Counter[str] = field(default_factory=Counter[str])
    assumed: set[str] = field(default_factory=set[str])


def ask_pages(engine: Engine, stage: Stage, pages: Iterable[SampledPage]) -> Asked:
    """Makes the calls of these pages at a stage with one step, which is at a provider.

    A needed step that has not landed on a page and gives a text has one made up. Raises
    `MissingExtra` without the provider's SDK, `ConfigError` and `StepError` for a step that cannot
    be loaded, `NotBatchable` for one that no batch can carry.
    """
    (step,) = stage.steps
    asked = Asked()
    chosen: dict[str, list[str]] = {}
    for _, batch, page_id in pages:
        chosen.setdefault(batch, []).append(page_id)
    python = load_operation(step.run, on_model=True).ask is None
    provider, recorder = open_asking(engine.project, stage.place, python=python)
    decoders = Decoders()
    with (
        closing(provider),
        closing(recorder) if recorder else nullcontext(),
        closing(decoders),
    ):
        for batch, page_ids in chosen.items():
            view = look(engine, stage.recipe, batch, [step.name])
            work = {page_id: (step.name,) for page_id in page_ids if page_id in view.pages}
            spec = task_spec(engine, stage, view, work)
            full = tuple(_with_needs(stage.recipe, page, step.needs, asked) for page in spec.pages)
            known = replace(spec, pages=full)
            # A declared step is made into calls without any recorder.
            asker = Asker.of(known, step, provider, lambda: cast("Recorder", recorder), decoders)
            for page, call in asker.calls():
                if isinstance(call, Call):
                    asked.calls[batch, page.page_id] = call
                    asked.sizes.append(len(provider.line(call.id, call)))
                elif call.failure is None:
                    asked.ready += 1
                else:
                    asked.failed[call.failure.words] += 1
    return asked


def _with_needs(recipe: Recipe, page: PageWork, needs: Iterable[str], asked: Asked) -> PageWork:
    missing = [need for need in needs if need not in page.needs and _gives_text(recipe, need)]
    if not missing:
        return page
    asked.assumed.update(missing)
    text = (_WORDS * (STAND_IN // len(_WORDS) + 1))[:STAND_IN]
    found: Mapping[str, Any] = {**page.needs, **{need: {"text": text} for need in missing}}
    return replace(page, needs=found)


def _gives_text(recipe: Recipe, name: str) -> bool:
    step = recipe.step(name)
    try:
        return "text" in load_operation(step.run, step.provider is not None).gives
    except (StepError, ConfigError):
        return False
