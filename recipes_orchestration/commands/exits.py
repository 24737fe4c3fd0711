"""What the exit code says, and which one an error gives."""

from __future__ import annotations

from ..errors import (
    DagsterError,
    HeldBack,
    LedgerError,
    LibraryError,
    PlaceError,
    RecipesError,
    SourceError,
)

__all__ = ["ALL_RIGHT", "NOT_COMPLETE", "STOPPED", "UNREACHABLE", "WORDS", "WRONG", "exit_code_of"]

ALL_RIGHT = 0
NOT_COMPLETE = 1
WRONG = 2
UNREACHABLE = 3
STOPPED = 130

WORDS = {
    ALL_RIGHT: "all right",
    NOT_COMPLETE: "a run or a backfill did not bring every page to its end, or doctor found a "
    "fault",
    WRONG: "the command or the project's files are wrong",
    UNREACHABLE: "a source, place, library or ledger, or Dagster, could not be reached",
    STOPPED: "stopped with Ctrl-C or SIGTERM",
}
"""What each exit code means, for the help and the documentation."""

_UNREACHABLE = (SourceError, LedgerError, LibraryError, PlaceError, DagsterError)


def exit_code_of(error: RecipesError) -> int:
    """1 for what a person holds back, 3 for what could not be reached, 2 for all that was wrong."""
    if isinstance(error, HeldBack):
        return NOT_COMPLETE
    return UNREACHABLE if isinstance(error, _UNREACHABLE) else WRONG
