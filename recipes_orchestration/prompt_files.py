"""Text files of a project folder that a step's keys name: prompts and JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .project_mistakes import choose, label
from .steps.answers import schema_problem
from .yaml_files import ConfigErrors, Loc, Mistake, YamlFile, quoted, shown_path

__all__ = ["MAX_FILE_BYTES", "named_file", "read_named", "read_schema"]

MAX_FILE_BYTES = 250_000


def named_file(file: YamlFile, given: str) -> Path:
    """Where a recipe's file of that name is: names start from the project folder."""
    return file.path.parent.parent / given


def read_named(file: YamlFile, loc: Loc, given: str) -> str:
    """The text of a file that stands at a place of a recipe; its line ends are all `\\n`.

    Raises `ConfigErrors` at the recipe's line for a file that is outside of the project folder,
    missing, empty or too large, and at the file's own line for what is not UTF-8.
    """

    def wrong(what: str) -> ConfigErrors:
        return ConfigErrors([file.mistake(loc, f"{label(file, loc)}: {what}")])

    folder = file.path.parent.parent.resolve()
    path = named_file(file, given)
    try:
        inside = not Path(given).is_absolute() and path.resolve().is_relative_to(folder)
        if not inside:
            raise wrong(f"found {quoted(given)}; allowed: a file in the project folder")
        if not path.is_file():
            raise wrong(f"found {quoted(given)}, {_absent(folder, path)}")
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a NUL in the name, a circle of links, no permission
        words = getattr(error, "strerror", None) or str(error)
        raise wrong(f"{quoted(given)} cannot be read: {words}") from None
    if len(data) > MAX_FILE_BYTES:
        raise wrong(f"{quoted(given)} is over {MAX_FILE_BYTES:,} bytes; write it shorter")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"found the byte 0x{data[error.start]:02x}; save it as UTF-8"
        raise ConfigErrors([Mistake(shown_path(path), line, what)]) from None
    if not text.strip():
        raise wrong(f"{quoted(given)} has nothing in it; write what the model is asked")
    # A checkout on another system may have other line ends, which must not change the key.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_schema(file: YamlFile, loc: Loc, given: str | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema that a recipe gives, itself or as a file's name.

    Raises `ConfigErrors` as `read_named` does, and when it is no valid schema.
    """
    if isinstance(given, str):
        schema = _read_json(file, loc, given)
        start, where, line = "", named_file(file, given), 1
    else:
        schema = dict(given)
        start, where, line = f"{label(file, loc)}: ", file.path, file.line(loc, key=True)
    problem = schema_problem(schema)
    if problem is not None:
        what = f"{start}found no valid JSON schema: {problem}"
        raise ConfigErrors([Mistake(shown_path(where), line, what)])
    return schema


def _read_json(file: YamlFile, loc: Loc, given: str) -> dict[str, Any]:
    text = read_named(file, loc, given)
    shown = shown_path(named_file(file, given))
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"found no JSON: {error.msg} in column {error.colno}"
        raise ConfigErrors([Mistake(shown, error.lineno, what)]) from None
    except (ValueError, RecursionError):
        what = "found JSON that is nested too deep or has a number that is too long"
        raise ConfigErrors([Mistake(shown, 1, what)]) from None
    if not isinstance(value, dict):
        raise ConfigErrors([Mistake(shown, 1, 'found no JSON object; allowed: {"type": ...}')])
    return value


def _absent(folder: Path, path: Path) -> str:
    if path.is_dir():
        return "which is a folder; name a file in it"
    try:
        beside = sorted(
            each.relative_to(folder).as_posix()
            for each in path.parent.iterdir()
            if each.is_file() and not each.name.startswith(".")
        )[:20]
    except (OSError, ValueError):
        beside = []
    if not beside:
        return "but the project folder has no such file; write it"
    return f"but there is no such file{choose(path.relative_to(folder).as_posix(), beside)}"
