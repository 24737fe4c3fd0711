"""The sheet as commands show it, and the question whether to go on."""

from __future__ import annotations

import sys

import typer

from ..engine.sheet import Sheet
from ..engine.sheet_words import COLUMNS, TEXT_COLUMNS, notes, rows
from .output import Output

__all__ = ["asks", "go_on", "tell_sheet"]


def tell_sheet(output: Output, sheet: Sheet) -> None:
    """Prints the table and what is to be known beside it."""
    output.table(COLUMNS, rows(sheet), left=TEXT_COLUMNS)
    for note in notes(sheet):
        output.line(note)


def asks(*, yes: bool, as_json: bool) -> bool:
    """Whether a person is there to be asked."""
    return not (yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty()


def go_on(output: Output, sheet: Sheet) -> bool:
    """Shows what would be done and asks; nothing is asked where there is nothing to do.

    Without an answer it goes on with work on this machine, and with no other.
    """
    if not sheet.pages:
        return True
    tell_sheet(output, sheet)
    here = not any(line.elsewhere for line in sheet.lines)
    try:
        return typer.confirm("Go on?", default=here)
    except typer.Abort:  # the input ended, or Ctrl-C
        output.note("")
        return False
