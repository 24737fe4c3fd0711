"""The `recipes` command as a test calls it: in this process, or as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from recipes_orchestration.cli import app

from .archive import Archive, environment

__all__ = ["Ran", "command", "recipes", "start"]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its one JSON document; fails when anything else is on stdout."""
        return json.loads(self.out)


def recipes(archive: Archive, *arguments: str) -> Ran:
    """Runs a command of the archive's project in this process."""
    home = str(archive.folder / "dagster_home")
    result = CliRunner(env={"DAGSTER_HOME": home}).invoke(
        app, [*arguments, "--project", str(archive.folder)]
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def command(*arguments: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "recipes_orchestration.cli", *arguments]


def start(archive: Archive, *arguments: str) -> subprocess.Popen[str]:
    """Starts a command as a process in a group of its own, as a shell does."""
    return subprocess.Popen(
        command(*arguments),
        env=environment(archive, DAGSTER_HOME=str(archive.folder / "dagster_home")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
