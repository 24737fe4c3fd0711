"""Landed results: what is done is read from here and from nowhere else."""

from __future__ import annotations

from .library import Library
from .results import MAX_VALUE_BYTES, SCHEMA, Pair, Result

__all__ = ["MAX_VALUE_BYTES", "SCHEMA", "Library", "Pair", "Result"]
