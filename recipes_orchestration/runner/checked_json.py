"""JSON from outside, taken apart field by field, each checked for its type and its size."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

__all__ = ["Fields", "json_of"]

_T = TypeVar("_T")


def json_of(data: bytes) -> Any:
    """The value; `ValueError` for what is no JSON, such as NaN, or too deep."""
    try:
        return json.loads(data, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is too deep") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


@dataclass(frozen=True)
class Fields:
    """An object, called `what` in messages. Every method raises `ValueError` that says what is
    wrong with the field of that name.
    """

    given: Any
    what: str

    def take(self, name: str, kind: type[_T]) -> _T:
        """The value, of that type."""
        value = self._value(name)
        # A bool is an int to Python, but not here.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{self.what} has no {kind.__name__} '{name}'")
        return value

    def maybe(self, name: str, kind: type[_T]) -> _T | None:
        """The value, or None where there is none."""
        return None if self._value(name) is None else self.take(name, kind)

    def text(self, name: str, pattern: re.Pattern[str]) -> str:
        """A text that the pattern fits as a whole."""
        value = self.take(name, str)
        if not pattern.fullmatch(value):
            raise ValueError(f"'{name}' of {self.what} is {value[:200]!r}")
        return value

    def number(self, name: str, *, least: float, most: float) -> float:
        """A number within the bounds."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{self.what} has no number '{name}'")
        if not least <= value <= most:
            raise ValueError(f"'{name}' of {self.what} is not between {least:g} and {most:g}")
        return float(value)

    def whole(self, name: str, *, least: int, most: int) -> int:
        """A whole number within the bounds."""
        value = self.take(name, int)
        if not least <= value <= most:
            raise ValueError(f"'{name}' of {self.what} is not between {least} and {most}")
        return value

    def items(self, name: str, *, at_most: int) -> list[Any]:
        """A list."""
        values: list[Any] = self.take(name, list)
        if len(values) > at_most:
            raise ValueError(f"{self.what} has more than {at_most:,} {name}")
        return values

    def texts(self, name: str, *, at_most: int) -> tuple[str, ...]:
        """A list of texts, none twice."""
        values = self.items(name, at_most=at_most)
        if not all(isinstance(each, str) for each in values) or len(set(values)) != len(values):
            raise ValueError(f"'{name}' of {self.what} is no list of texts, or has one twice")
        return tuple(values)

    def _value(self, name: str) -> Any:
        if not isinstance(self.given, dict):
            raise ValueError(f"{self.what} is no object")
        return self.given.get(name)
