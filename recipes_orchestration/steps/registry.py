"""From the `run` of a recipe to the operation: built in, registered or importable."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import StepError
from .step import Operation

__all__ = ["BUILT_IN", "ENTRY_POINTS", "ON_MODELS", "load_operation", "operation_names"]

ENTRY_POINTS = "recipes_orchestration.steps"
"""The entry point group in which another package registers step names."""

BUILT_IN = ("lines", "read", "names", "embed", "text", "join")
"""Each is an operation of its own name in the module of that name beside this one."""

ON_MODELS = ("prompt", "read", "names", "embed")
"""What can be asked of a provider's models: each in the module `model_<name>` beside this one."""

_IMPORTABLE = re.compile(
    r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<path>[^\W\d]\w*(\.[^\W\d]\w*)*)"
)


def operation_names(on_model: bool = False) -> tuple[str, ...]:
    """The names that `run` may have beside `module:function`; imports none of them.

    `on_model`: those of a step at a provider's place.
    """
    own = ON_MODELS if on_model else BUILT_IN
    return (*own, *sorted(set(_registered()) - {*BUILT_IN, *ON_MODELS}))


def load_operation(run: str, on_model: bool = False) -> Operation:
    """The operation that a recipe's `run` names.

    A built-in name, a name that another package registers by an entry point of the group
    `recipes_orchestration.steps`, or `module:function`. A plain function `(page, context)` gets
    version "1"; one decorated with `@step` is used as it is. `on_model`: the step is at a
    provider's place, where `prompt`, `read`, `names` and `embed` have `ask` and `parse`. Raises
    `StepError`, in a sentence that says what is allowed or what to do.
    """
    if on_model and run in ON_MODELS:
        return getattr(importlib.import_module(f"{__package__}.model_{run}"), run)
    if on_model and run in BUILT_IN:
        raise StepError(
            f"'{run}' asks no model, so it runs on this machine; take the step's place away."
        )
    if run in ON_MODELS and run not in BUILT_IN:
        raise StepError(f"'{run}' asks a model; give the step the place of a provider.")
    if run in BUILT_IN:
        return getattr(importlib.import_module(f"{__package__}.{run}"), run)
    registered = _registered().get(run)
    if registered is not None:
        return _operation(run, _load_entry_point(run, registered))
    match = _IMPORTABLE.fullmatch(run)
    if match is None:
        raise StepError(_unknown(run, on_model))
    return _operation(run, _load_path(run, match["module"], match["path"]))


@cache
def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _unknown(run: str, on_model: bool) -> str:
    names = operation_names(on_model)
    near = difflib.get_close_matches(run, names, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return (
        f"There is no operation '{run}'{hint}; allowed are {', '.join(names)}, or module:function "
        "for a function of your own."
    )


def _load_entry_point(run: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise StepError(
            f"The operation '{run}' ({point.value}) of an installed package cannot be loaded: "
            f"{_words(error)}; reinstall that package or correct it."
        ) from error


def _load_path(run: str, module: str, path: str) -> Any:
    try:
        # What a module prints must not get into a document on standard output.
        with redirect_stdout(sys.stderr):
            found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise StepError(
                f"The module of '{run}' was not found ({_words(error)}); put it into the project "
                "folder, which is on Python's path, or install its package."
            ) from error
        raise StepError(_broken_module(run, module, error)) from error
    except (Exception, SystemExit) as error:
        raise StepError(_broken_module(run, module, error)) from error
    so_far = module
    for part in path.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            raise StepError(f"'{run}' cannot be loaded: {so_far} has no '{part}'{hint}.")
        found = getattr(found, part)
        so_far = f"{so_far}.{part}"
    return found


def _broken_module(run: str, module: str, error: BaseException) -> str:
    return (
        f"The module of '{run}' cannot be imported: {_words(error)}; "
        f"`python -c 'import {module}'` in the project folder shows where."
    )


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


def _operation(run: str, found: Any) -> Operation:
    if isinstance(found, Operation):
        return found
    if not callable(found) or inspect.isclass(found):
        raise StepError(
            f"'{run}' is a {'class' if inspect.isclass(found) else type(found).__name__}, not a "
            "function (page, context) that gives a JSON value."
        )
    if inspect.iscoroutinefunction(found) or inspect.isgeneratorfunction(found):
        raise StepError(
            f"'{run}' is an async or generator function; a step is a plain function "
            "(page, context) that returns its JSON value."
        )
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        signature = None  # Some compiled functions do not tell; calling them will.
    if signature is not None:
        try:
            signature.bind(None, None)
        except TypeError as error:
            raise StepError(
                f"'{run}' takes {signature}, but a step is called with two arguments: "
                "(page, context)."
            ) from error
    about = (inspect.getdoc(found) or "").partition("\n")[0]
    return Operation(name=run, function=found, about=about, kinds=("python",))
