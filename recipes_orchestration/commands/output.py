"""What commands print: tables and lines, or one JSON document, on stdout; progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..engine.durations import duration

__all__ = ["Output", "count", "duration", "print_json"]

# Without a terminal nothing is cut to fit one: a program or a file reads it.
_WIDE = 500


def print_json(document: Any) -> None:
    """One JSON document in ASCII, so that no name in it can do anything to a terminal."""
    print(json.dumps(document, indent=2, default=str))


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 page`, `2,000 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


class Output:
    """Where one command prints. With `as_json` only `document` writes to stdout."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = _console(stderr=False)
        self._err = _console(stderr=True)

    @property
    def live(self) -> bool:
        """Whether somebody watches stderr."""
        return self._err.is_terminal

    def document(self, value: Any) -> None:
        """The command's one JSON document; nothing without `--json`."""
        if self.as_json:
            print_json(value)

    def line(self, text: str = "") -> None:
        """A line for a person; nothing with `--json`."""
        if not self.as_json:
            self._out.print(text, soft_wrap=True)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        totals: Sequence[str] | None = None,
        left: Sequence[int] = (0,),
    ) -> None:
        """A table for a person; `left` are the columns that hold text, the others numbers."""
        if self.as_json:
            return
        table = Table(box=None, pad_edge=False, header_style="bold", show_footer=totals is not None)
        for index, name in enumerate(columns):
            table.add_column(
                name,
                footer=totals[index] if totals else "",
                justify="left" if index in left else "right",
                overflow="fold",
                footer_style="bold",
            )
        for row in rows:
            table.add_row(*row)
        self._out.print(table)

    def note(self, text: str) -> None:
        """A line on stderr: what is going on, or what went wrong."""
        self._err.print(text, soft_wrap=True)

    def progress(self) -> Progress:
        """Bars on stderr, with what is done, of how much, and how long it will take."""
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeRemainingColumn(),
            console=self._err,
            disable=not self.live,
        )


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # No markup: names of files and words of errors may hold brackets.
    return Console(
        file=stream,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if stream.isatty() else _WIDE,
    )
