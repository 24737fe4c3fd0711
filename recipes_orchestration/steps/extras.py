"""Packages that come with an extra: imported when a step is set up, asked about before."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from ..errors import MissingExtra
from .step import Operation

__all__ = ["load_package", "missing"]


def load_package(name: str, *, step: str, extra: str) -> ModuleType:
    """The module of that name, imported now.

    Raises `MissingExtra`, in one sentence with the command that helps, when it is not installed
    or cannot be loaded on this machine.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        absent = (error.name or name).partition(".")[0]
        raise MissingExtra(_sentence(step, absent, extra)) from error
    except ImportError as error:
        words = " ".join(str(error).split())
        raise MissingExtra(
            f"The step '{step}' cannot load {name} ({words}); install it anew with: "
            f"pip install --force-reinstall 'recipes-orchestration[{extra}]'."
        ) from error


def missing(operation: Operation) -> str | None:
    """The sentence that says which package the operation lacks, or None when it lacks nothing.

    Looks the packages up without importing them, so it costs less than a millisecond each.
    """
    for package in operation.packages:
        if importlib.util.find_spec(package) is None:
            return _sentence(operation.name, package, operation.extra)
    return None


def _sentence(step: str, package: str, extra: str | None) -> str:
    what = f"'recipes-orchestration[{extra}]'" if extra else package
    return f"The step '{step}' needs {package}; install it with: pip install {what}."
