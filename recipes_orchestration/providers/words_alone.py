"""Calls of questions that are words alone: those of a step differ in nothing else. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..steps.ask import Ask, Text
from .json_values import PICTURE, dump
from .provider import Call, Group

__all__ = ["words_alone"]

_Making = Callable[[Ask, str], Call]


def words_alone(ask: Ask, model: str, make: _Making) -> Call:
    """What `make(ask, model)` gives; where the question is one text, in half the time.

    Then the text alone is written, into what `make` wrote around another one.
    """
    if len(ask.parts) == 1 and ask.system is None and ask.schema is None:
        (part,) = ask.parts
        if isinstance(part, Text):
            provider, group, before, after = _frame(make, model, ask.max_tokens, ask.temperature)
            return Call(provider, group, b"".join((before, dump(part.text), after)))
    return make(ask, model)


@lru_cache(maxsize=64, typed=True)
def _frame(
    make: _Making, model: str, max_tokens: int, temperature: float | None
) -> tuple[str, Group, bytes, bytes]:
    """The provider, the group, and what stands around the words in the body."""
    provider, group, body = make(Ask((Text(PICTURE),), max_tokens, temperature=temperature), model)
    before, after = body.split(dump(PICTURE))
    return provider, group, before, after
