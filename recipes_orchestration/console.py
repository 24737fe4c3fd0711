"""The console script `recipes`: the command line, or what to install for it."""

from __future__ import annotations

import sys

from .commands.exits import exit_code_of
from .errors import MissingExtra

__all__ = ["main"]


def main() -> None:
    """Runs the command line; on a far side, which has only the runner, says what it lacks."""
    try:
        from .cli import main as command_line
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if absent == __package__:
            raise
        lacking = MissingExtra(
            f"The command recipes needs {absent}; install it with: "
            "pip install 'recipes-orchestration[orchestration]'."
        )
        sys.stderr.write(f"{lacking}\n")
        sys.exit(exit_code_of(lacking))
    command_line()
