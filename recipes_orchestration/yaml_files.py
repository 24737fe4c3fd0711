"""YAML files that remember their lines, and the mistakes found in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError

from .errors import ConfigError

__all__ = ["ConfigErrors", "Loc", "Mistake", "YamlFile", "quoted", "read_yaml", "shown_path"]

MAX_BYTES = 250_000
MAX_DEPTH = 40
MAX_NODES = 100_000  # after aliases are followed, so that nested aliases cannot grow without end

Loc = tuple[str | int, ...]
"""Where in a file: keys and list indexes from the top, as pydantic writes them."""

_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


@dataclass(frozen=True, order=True)
class Mistake:
    """One thing that is wrong in a project's files. `line` counts from 1."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        # What was found is quoted in it, and may hold line ends or steer a terminal.
        shown = (c if c.isprintable() else " " for c in f"{self.file}:{self.line}: {self.message}")
        return "".join(shown)


class ConfigErrors(ConfigError):
    """Every mistake found, one a line: `file:line: what was found; what is allowed`."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


@dataclass(frozen=True)
class Spot:
    """Lines of a value and of the key before it, and a scalar's text as it stands in the file."""

    key_line: int
    line: int
    written: str | None


@dataclass(frozen=True)
class YamlFile:
    """A file's mapping and where each value of it stands."""

    path: Path
    value: dict[str, Any]
    spots: dict[Loc, Spot]

    def line(self, loc: Sequence[str | int], *, key: bool = False) -> int:
        """The line of a value, or of its key; of the nearest thing around it when it is absent."""
        for end in range(len(loc), -1, -1):
            spot = self.spots.get(tuple(loc[:end]))
            if spot is not None:
                return spot.key_line if key or end < len(loc) else spot.line
        return 1

    def written(self, loc: Sequence[str | int]) -> str | None:
        """A scalar as it is written in the file; None for lists and mappings."""
        spot = self.spots.get(tuple(loc))
        return None if spot is None else spot.written

    def mistake(self, loc: Sequence[str | int], message: str, *, key: bool = False) -> Mistake:
        """A mistake at that place of this file."""
        return Mistake(shown_path(self.path), self.line(loc, key=key), message)


def quoted(found: str) -> str:
    """What was found, in quotes and never long, for a message."""
    # Lone halves of surrogate pairs, which YAML can spell, cannot be written out anywhere.
    shown = (found if len(found) <= 60 else found[:57] + "...").encode(errors="replace").decode()
    return f'"{shown}"'


def shown_path(path: Path) -> str:
    """A path for messages: relative below the working directory, else as it is."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def read_yaml(path: Path) -> YamlFile:
    """Reads a file that holds one mapping.

    Raises `ConfigErrors` with every mistake that stands between the bytes and a mapping of JSON
    values: no file, too long, not UTF-8, syntax, duplicate keys, tags, keys that are not text.
    """

    def fail(line: int, message: str) -> ConfigErrors:
        return ConfigErrors([Mistake(shown_path(path), line, message)])

    text = _text(path, fail)
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise fail(*_syntax(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        what = f"found the character U+{code:04X}, which YAML does not allow"
        raise fail(line, f"{what}; remove it") from None
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == ""):
        raise fail(1, "the file is empty; docs/project.md shows what belongs in it")
    if not isinstance(node, yaml.MappingNode):
        found = "a list" if isinstance(node, yaml.SequenceNode) else "one value"
        raise fail(
            _line(node), f"found {found}; allowed: keys with values, such as `name: letters`"
        )
    walk = _Walk(shown_path(path))
    value = walk.value(node, (), _line(node))
    if walk.mistakes:
        raise ConfigErrors(sorted(walk.mistakes))
    return YamlFile(path, value, walk.spots)


def _text(path: Path, fail: Any) -> str:
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise fail(1, f"the file {what}; write it, or make a new project with `recipes init DIR`")
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise fail(1, f"the file cannot be read: {error.strerror}; check who owns it") from None
    if len(data) > MAX_BYTES:
        raise fail(1, f"the file is over {MAX_BYTES:,} bytes; split it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fail(line, f"found the byte 0x{data[error.start]:02x}; save it as UTF-8") from None


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _syntax(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark is not None else 1
    problem = (error.problem or "it cannot be read")[:200]
    context = (error.context or "")[:200]
    if "'\\t'" in problem:
        return line, "found a tab where YAML allows only spaces; indent with spaces"
    if "scanning an alias" in context or "undefined alias" in problem:
        return line, 'found a value that begins with *; put it in quotes, such as "* * * * *"'
    if "cannot start any token" in problem or "mapping values" in problem:
        return line, f"{problem}; put a text that holds : or special characters in quotes"
    if "found another document" in problem:
        return line, "found a second document (---); write one file for each"
    return line, f"not YAML: {f'{context}, ' if context else ''}{problem}"


class _Loader(yaml.SafeLoader):
    """Composes nodes to a bounded depth: Python's own stack would end before a hostile file."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark
            raise ComposerError(
                None, None, f"nested more than {MAX_DEPTH} deep; write it flatter", mark
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Walk:
    """Nodes to JSON values, noting where each stands and what is wrong."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spots: dict[Loc, Spot] = {}
        self.mistakes: list[Mistake] = []
        self.constructor = yaml.constructor.SafeConstructor()

    def wrong(self, node: yaml.Node, message: str) -> None:
        self.mistakes.append(Mistake(self.file, _line(node), message))

    def value(self, node: yaml.Node, loc: Loc, key_line: int) -> Any:
        if len(self.spots) >= MAX_NODES or len(loc) > MAX_DEPTH:
            what = f"over {MAX_NODES:,} values or {MAX_DEPTH} levels once aliases (*) are followed"
            raise ConfigErrors([Mistake(self.file, _line(node), f"{what}; use no aliases")])
        written = node.value if isinstance(node, yaml.ScalarNode) else None
        self.spots[loc] = Spot(key_line, _line(node), written)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, loc)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.value(item, (*loc, index), _line(item)) for index, item in items]
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            written = str(key_node.value)
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.wrong(key_node, "found a merge key (<<); write the keys out")
            elif key_node.tag == _TIMESTAMP or key_node.tag not in _PLAIN:
                self.wrong(key_node, "found a key that is not text; put it in quotes")
            elif key_node.tag != "tag:yaml.org,2002:str":
                self.wrong(
                    key_node, f"found the key {written[:60]}; put it in quotes: {quoted(written)}"
                )
            elif written in first:
                where = f"it stands at line {first[written]} already"
                self.wrong(key_node, f"found the key {quoted(written)} twice; {where}, keep one")
            else:
                first[written] = _line(key_node)
                result[written] = self.value(value_node, (*loc, written), _line(key_node))
        return result

    def scalar(self, node: yaml.Node) -> Any:
        if node.tag == _TIMESTAMP:
            return node.value  # JSON has no dates: one stays the text that was written
        if node.tag not in _PLAIN:
            self.wrong(
                node, f"found the tag {node.tag[:60]}; allowed: plain text, numbers, true, false"
            )
            return None
        if node.tag.endswith(":int") and ":" in node.value:
            return node.value  # YAML 1.1 would read 12:30 as 750
        try:
            value = self.constructor.construct_object(node)
        except (ValueError, yaml.YAMLError):
            self.wrong(
                node, f'found "{node.value[:40]}", which does not fit its tag; remove the tag'
            )
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.wrong(node, f"found {node.value[:60]}; allowed: a finite number")
            return None
        return value
