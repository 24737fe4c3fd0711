"""Words from outside, made fit to be kept."""

from __future__ import annotations

__all__ = ["kept_words"]

_LONGEST = 20_000


def kept_words(text: str) -> str:
    """The text as a database takes it: at most 20,000 characters.

    PostgreSQL takes neither NUL nor half of a surrogate pair, and both occur in what programs
    and providers answer; they are written out as escapes.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} ... ({len(text) - _LONGEST} more characters)"
    text = text.replace("\0", "\\x00")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
