"""docs/commands.md and the command say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from recipes_orchestration.cli import app
from recipes_orchestration.commands.exits import WORDS

DOCS = (Path(__file__).parent.parent / "docs" / "commands.md").read_text()
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
OF_ALL = {"--project", "--json", "--help"}


def options_of(command: str) -> set[str]:
    return {option for each in COMMANDS[command].params for option in each.opts if option[0] == "-"}


def section(command: str) -> str:
    return DOCS.partition(f"\n### {command}\n")[2].partition("\n### ")[0].partition("\n## ")[0]


def test_each_command_has_its_section_and_each_section_its_command():
    assert set(re.findall(r"^### (\S+)$", DOCS, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_section_names_every_option_of_its_command_and_no_other(command: str):
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section(command)))
    assert named - OF_ALL == options_of(command) - OF_ALL


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_the_options_of_all_but_those_that_are_named(command: str):
    missing = {"--project", "--json"} - options_of(command)
    assert missing == {
        "init": {"--project"},
        "dev": {"--json"},
        "rehearse": {"--project"},
        "rehearse-slurm": {"--project"},
    }.get(command, set())


def test_every_example_calls_the_command_as_it_is():
    examples = re.findall(r"^\$ recipes (\S+)(.*)$", DOCS, re.MULTILINE)
    assert len(examples) == len(COMMANDS)
    for command, rest in examples:
        assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= options_of(command)


def test_the_exit_codes_are_those_of_the_help():
    table = dict(re.findall(r"^\| (\d+) \| (.+) \|$", DOCS, re.MULTILINE))
    assert table == {str(code): words for code, words in WORDS.items()}
