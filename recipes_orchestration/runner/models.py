"""The models of steps: each loaded once, counted, and let go of when its step is over."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..errors import RecipesError, StepError
from ..recipe import Step, canonical_json
from ..steps.step import Operation

__all__ = ["Models", "words_of"]


class Models:
    """What `setup` of the steps' operations gave, by operation and params.

    `on_load(step, seconds)` is told of each that was loaded.
    """

    def __init__(self, on_load: Callable[[str, float], None] | None = None) -> None:
        self._on_load = on_load
        self._loaded: dict[tuple[str, str], Any] = {}

    def of(self, step: Step, operation: Operation) -> Any:
        """The step's model, None for an operation that has none.

        Raises `StepError` when it cannot be set up.
        """
        if operation.setup is None:
            return None
        known = (step.run, canonical_json(dict(step.params)))
        if known not in self._loaded:
            started = time.perf_counter()
            self._loaded[known] = _set_up(step, operation.setup)
            if self._on_load is not None:
                self._on_load(step.name, time.perf_counter() - started)
        return self._loaded[known]

    def release(self) -> None:
        """Lets go of all models, so that the next one has the memory to itself."""
        if not self._loaded:
            return
        self._loaded.clear()
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None:
            # What torch has freed on a GPU it keeps for itself, and other libraries cannot have it.
            with suppress(Exception):
                torch.cuda.empty_cache()


def _set_up(step: Step, setup: Callable[[Any], Any]) -> Any:
    try:
        return setup(step.params)
    except RecipesError:
        raise
    except BaseException as error:
        raise StepError(
            f"Step '{step.name}' could not be set up: {words_of(error)}. "
            f"Mend what it names and run the recipe again."
        ) from error


def words_of(error: BaseException) -> str:
    """The error as one line: our own errors as they are, others with their type."""
    text = " ".join(str(error).split())[:2000]
    if isinstance(error, RecipesError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
