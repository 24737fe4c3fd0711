"""The `recipes` command."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from .commands import (
    alert_commands,
    control_commands,
    event_commands,
    pages_commands,
    place_commands,
    project_commands,
    rehearsal_commands,
    result_commands,
    run_commands,
)
from .commands.exits import STOPPED, WORDS, exit_code_of
from .commands.options import JSON
from .errors import RecipesError

__all__ = ["app", "main"]

_EPILOG = "Exit codes: " + "; ".join(f"{code} {words}" for code, words in WORDS.items()) + "."


class _Commands(TyperGroup):
    """Prints an error of ours as its sentence and ends with its exit code; never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RecipesError as error:
            code = exit_code_of(error)
            _tell(str(error), code, as_json=bool(ctx.meta.get(JSON)))
            raise typer.Exit(code) from error
        except KeyboardInterrupt as stop:
            raise typer.Exit(STOPPED) from stop


def _tell(words: str, code: int, *, as_json: bool) -> None:
    from .commands.output import print_json
    from .pages.naming import shown

    for line in words.split("\n"):
        typer.echo(shown(line), err=True)
    if as_json:
        print_json({"error": words, "exit_code": code})


app = typer.Typer(
    name="recipes",
    cls=_Commands,
    help="Runs multi-step recipes over folders of scanned pages.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _group in (
    project_commands,
    pages_commands,
    run_commands,
    result_commands,
    control_commands,
    place_commands,
    alert_commands,
    event_commands,
    rehearsal_commands,
):
    _group.register(app)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A name that the terminal's encoding cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
