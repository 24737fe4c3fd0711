"""Lines of a task's results as they come back: whatever is not a result of what was sent is left
out and counted.
"""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pydantic_core

from ...runner.task_folder import decode_line
from ...runner.work import Failure, FailureKind, Outcome

__all__ = ["LONGEST_WORDS", "MOST_VALUE_BYTES", "LeftOut", "outcome_of_line", "plain"]

MOST_VALUE_BYTES = 32_000_000
"""The library's own bound: a larger value could not land."""

LONGEST_WORDS = 2000
"""Characters of a text from the far side."""

_LONGEST_SECONDS = 1e9
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_CRC = re.compile(rb"[0-9a-f]{8} ")
# What a far side may say of a page. Others pause places, are not counted, or end at a place only.
_PAGE_KINDS = frozenset(
    {
        FailureKind.UNREADABLE,
        FailureKind.SOURCE,
        FailureKind.FAILED,
        FailureKind.DIED,
        FailureKind.MEMORY,
        FailureKind.TIMEOUT,
    }
)


@dataclass
class LeftOut:
    """What came back and is not believed.

    `torn` lines are damaged or cut off, `strange` ones no results, `unknown` ones of a page or
    step that was not sent, `twice` said again what was said, `too_large` have a value that cannot
    land. `files` lie there unasked for or are no plain files. `outcome`: it could not be read.
    """

    torn: int = 0
    strange: int = 0
    unknown: int = 0
    twice: int = 0
    too_large: int = 0
    files: int = 0
    outcome: int = 0

    def words(self) -> str:
        """What was left out, for a person; empty when nothing was."""
        told = {
            "torn": "damaged lines",
            "strange": "lines that are no results",
            "unknown": "results of pages or steps that were not sent",
            "twice": "results that came twice",
            "too_large": f"values of more than {MOST_VALUE_BYTES:,} bytes",
            "files": "files that were not asked for",
            "outcome": "an outcome that cannot be read",
        }
        return ", ".join(
            f"{told[name]} ({count:,})" if name != "outcome" else told[name]
            for name, count in asdict(self).items()
            if count
        )


def outcome_of_line(line: bytes, left_out: LeftOut) -> Outcome | None:
    """What a whole line says; None, and counted, when it is no outcome."""
    told = _decoded(line)
    if told is None:
        left_out.torn += 1
        return None
    page, step, seconds = (told.get(name) for name in ("page", "step", "seconds"))
    if (
        not isinstance(page, str)
        or not isinstance(step, str)
        or isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 <= seconds <= _LONGEST_SECONDS
        or ("failure" in told) == ("value" in told)
    ):
        left_out.strange += 1
        return None
    if "failure" in told:
        failure = _failure(told["failure"])
        if failure is None:
            left_out.strange += 1
            return None
        return Outcome(page, step, float(seconds), failure=failure)
    return _with_value(page, step, float(seconds), told["value"], left_out)


def _decoded(line: bytes) -> dict[str, Any] | None:
    """As `decode_line`, in half of the time; what the faster parser refuses is left to that."""
    text = line[9:].removesuffix(b"\n")
    if not _CRC.match(line) or zlib.crc32(text) != int(line[:8], 16):
        return None
    try:
        told = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        return decode_line(line)
    return told if isinstance(told, dict) else None


def _with_value(
    page: str, step: str, seconds: float, value: Any, left_out: LeftOut
) -> Outcome | None:
    size = _size(value)
    if size is None:
        left_out.strange += 1
        return None
    if size > MOST_VALUE_BYTES:
        left_out.too_large += 1
        return None
    return Outcome(page, step, seconds, value=value)


def _size(value: Any) -> int | None:
    """The bytes of a value as the library writes it; None for one that it does not take.

    A number such as 1e999 has become infinite, and half a character is no Unicode. The faster
    writer tells neither for sure and refuses what is nested deep: then the library's own is asked.
    """
    with suppress(ValueError):
        written = pydantic_core.to_json(value, inf_nan_mode="constants")
        if b"Infinity" not in written:
            return len(written)
    try:
        return len(_ENCODE(value).encode())
    except (ValueError, RecursionError):
        return None


def _failure(told: Any) -> Failure | None:
    kind, words = (told.get("kind"), told.get("words")) if isinstance(told, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(words, str):
        return None
    if kind not in _PAGE_KINDS:
        return Failure(FailureKind.FAILED, plain(words))
    return Failure(FailureKind(kind), plain(words))


def plain(words: str) -> str:
    """A text from the far side as a bounded line that a terminal can be shown."""
    shown = "".join(each if each.isprintable() else " " for each in words[:LONGEST_WORDS])
    return " ".join(shown.split())
