"""Params of a step, checked against a model before anything is loaded."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import ConfigError

__all__ = ["NoParams", "Params", "checker", "read_params"]

ParamsT = TypeVar("ParamsT", bound="Params")


class Params(BaseModel):
    """Base of an operation's params: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoParams(Params):
    """For operations that take no params."""


def read_params(operation: str, model: type[ParamsT], params: Mapping[str, Any]) -> ParamsT:
    """The params of a recipe as that model.

    Raises `ConfigError` that names each wrong param, what it is and what is allowed.
    """
    try:
        return model.model_validate(dict(params))
    except ValidationError as error:
        known = sorted(model.model_fields)
        faults = [
            _unknown(str(fault["loc"][0]), known)
            if fault["type"] == "extra_forbidden"
            else _wrong(fault["loc"], fault["input"], fault["msg"])
            for fault in error.errors(include_url=False)
        ]
        allowed = f"it takes {', '.join(known)}" if known else "it takes no params"
        raise ConfigError(
            f"The params of '{operation}' are not right: {'; '.join(faults)}; {allowed}."
        ) from error


def checker(operation: str, model: type[Params]) -> Callable[[Mapping[str, Any]], None]:
    """An operation's `check` out of its params model."""

    def check(params: Mapping[str, Any]) -> None:
        read_params(operation, model, params)

    return check


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"'{name}' is not known" + (f" (did you mean '{near[0]}'?)" if near else "")


def _wrong(where: tuple[int | str, ...], given: object, words: str) -> str:
    name = ".".join(map(str, where))
    return f"{name}: {given!r} given, {words[:1].lower()}{words[1:]}"
