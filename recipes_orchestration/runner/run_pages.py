"""Runs steps on pages in this process: step by step over a few pages, each model loaded once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import PageUnreadable, SourceError, StepError
from ..pages.page import Page
from ..pages.source import SourceReader
from ..recipe import Step
from ..steps.registry import load_operation
from ..steps.seen import seen_page
from ..steps.step import Context, Operation
from .models import Models, words_of
from .page_bytes import page_of
from .work import Failure, FailureKind, Outcome, PageWork

__all__ = [
    "MANY",
    "MAX_VALUE_BYTES",
    "Setting",
    "check_value",
    "operation_of",
    "outcomes_of",
    "run_pages",
    "run_step",
    "take_loads",
    "words_of",
]

MANY = 8
"""Pages handed at once to an operation that has a form for several."""


# One page's value as JSON. A page of dense text with its polygons takes about 100 kB.
MAX_VALUE_BYTES = 32 * 1024 * 1024
# An ASCII character takes at most six bytes as JSON.
_SURELY_SMALL = MAX_VALUE_BYTES // 12

_loads: list[tuple[str, float]] = []
_models = Models(lambda step, seconds: _loads.append((step, seconds)))
_operations: dict[str, Operation] = {}


@dataclass(frozen=True)
class Setting:
    """What is the same for all pages of a task."""

    steps: tuple[Step, ...]
    reader: SourceReader
    import_path: str
    max_pixels: int


def run_pages(setting: Setting, works: Sequence[PageWork]) -> list[Outcome]:
    """One outcome for each page and step that was reached; a failed page skips what needs it.

    The models stay loaded for the next pages. Raises `StepError` when a step cannot be loaded or
    its model cannot be set up: then no page is to blame.
    """
    return list(outcomes_of(setting, works))


def outcomes_of(setting: Setting, works: Sequence[PageWork]) -> Iterator[Outcome]:
    """The outcomes of `run_pages`, each as soon as it is there."""
    if setting.import_path not in sys.path:
        sys.path.insert(0, setting.import_path)
    pages = {work.page_id: page_of(setting.reader, work, setting.max_pixels) for work in works}
    values: dict[str, dict[str, Any]] = {work.page_id: dict(work.needs) for work in works}
    for step in setting.steps:
        ready = [
            seen_page(pages[work.page_id], step.image)
            for work in works
            if step.name in work.steps and all(need in values[work.page_id] for need in step.needs)
        ]
        if not ready:
            continue
        needs = [{need: values[page.page_id][need] for need in step.needs} for page in ready]
        for outcome in run_step(step, ready, needs, _models):
            yield outcome
            if outcome.failure is None:
                values[outcome.page_id][step.name] = outcome.value


def take_loads() -> list[tuple[str, float]]:
    """The step and seconds of each model that `run_pages` has loaded since this was asked."""
    loads = list(_loads)
    _loads.clear()
    return loads


def run_step(
    step: Step, pages: Sequence[Page], needs: Sequence[Mapping[str, Any]], models: Models
) -> Iterator[Outcome]:
    """One step over pages, each with the values that the step needs: outcomes as they are there.

    Raises `StepError` when the step cannot be loaded or its model cannot be set up.
    """
    operation = operation_of(step)
    model = models.of(step, operation)
    contexts = [
        Context(step=step.name, params=step.params, needs=each, model=model) for each in needs
    ]
    yield from _outcomes(step, operation, pages, contexts)


def operation_of(step: Step) -> Operation:
    """The step's operation, loaded once. Raises `StepError` when it cannot be."""
    if step.run not in _operations:
        _operations[step.run] = load_operation(step.run)
    return _operations[step.run]


def _outcomes(
    step: Step, operation: Operation, pages: Sequence[Page], contexts: Sequence[Context]
) -> Iterator[Outcome]:
    """All pages at once when the operation has a form for it, else, or when that fails, singly."""
    if operation.many is not None and len(pages) > 1:
        started = time.perf_counter()
        try:
            values = list(operation.many(pages, contexts))
        except BaseException:  # noqa: BLE001  one page may have failed them all; each goes alone
            values = []
        if len(values) == len(pages):
            each = (time.perf_counter() - started) / len(pages)
            for page, value in zip(pages, values, strict=True):
                yield _checked(step, page, each, partial(_same, value))
            return
    for page, context in zip(pages, contexts, strict=True):
        yield _checked(step, page, 0.0, partial(operation.function, page, context))


def _same(value: Any) -> Any:
    return value


def _checked(step: Step, page: Page, spent: float, compute: Callable[[], Any]) -> Outcome:
    started = time.perf_counter()
    failure: Failure | None = None
    value: Any = None
    try:
        value = compute()
        check_value(value)
    except PageUnreadable as error:
        failure = Failure(FailureKind.UNREADABLE, str(error))
    except SourceError as error:
        failure = Failure(FailureKind.SOURCE, str(error))
    except BaseException as error:  # noqa: BLE001  whatever a step raises, an exit too, is the page's
        failure = Failure(FailureKind.FAILED, words_of(error))
    return Outcome(
        page_id=page.page_id,
        step=step.name,
        seconds=spent + time.perf_counter() - started,
        value=None if failure else value,
        failure=failure,
    )


def check_value(value: Any) -> None:
    """Raises `StepError` when a step's value is not JSON, or larger than `MAX_VALUE_BYTES`."""
    if _is_plain_text(value):
        return
    if not _names_are_text(value):
        raise StepError("the step's value is not JSON: a name in it is not a text")
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        raise StepError(f"the step's value is not JSON: {error}") from error
    if size > MAX_VALUE_BYTES:
        raise StepError(f"the step's value has {size:,} bytes; {MAX_VALUE_BYTES:,} are allowed")


def _is_plain_text(value: Any) -> bool:
    """Whether it is surely JSON of an allowed size: an object of ASCII texts, as most are."""
    if type(value) is not dict:
        return False
    size = 0
    for name, each in value.items():
        if type(name) is not str or type(each) is not str:
            return False
        if not (name.isascii() and each.isascii()):
            return False
        size += len(name) + len(each)
    return size < _SURELY_SMALL


def _names_are_text(value: Any) -> bool:
    """JSON would turn other names into texts, and two of them may become the same."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _names_are_text(each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return all(_names_are_text(each) for each in value)
    return True
