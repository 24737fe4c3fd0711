"""Reads a vector that came as a JSON array."""

from __future__ import annotations

import sys
from typing import Any

from .json_values import as_list

__all__ = ["vector_of"]

# What a column of numbers can hold; NaN and infinity do not pass it either.
LARGEST = sys.float_info.max


def vector_of(value: Any) -> tuple[float, ...] | None:
    """The numbers, none for an empty array; None when it is no array of numbers."""
    numbers = as_list(value)
    if not isinstance(value, list):
        return None
    if not all(type(each) in (int, float) and abs(each) <= LARGEST for each in numbers):
        return None
    return tuple(float(each) for each in numbers)
