"""A file that cannot be read as plain YAML is told with its line, and never opened unbounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recipes_orchestration.yaml_files import ConfigErrors, read_yaml


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("recipe: a\n\tsource: b\n", 2, "found a tab"),
        ("recipe: a\nsource: [b\nsteps: c\n", 3, "not YAML"),
        ("recipe: a: b\n", 1, "in quotes"),
        ("recipe: @a\n", 1, "in quotes"),
        ("recipe: a\n---\nrecipe: b\n", 2, "second document"),
        ("recipe: *a\n", 1, "begins with *"),
        ("recipe: a\nsource: \x07\n", 2, "U+0007"),
        ("recipe: a\nsource: !!python/object:os.system x\n", 2, "tag"),
        ("recipe: a\nsource: !!int x\n", 2, "tag"),
        ("base: &b {a: 1}\nsteps:\n  <<: *b\n", 3, "merge key"),
        ("recipe: .nan\n", 1, "a finite number"),
        ("[a, b]: 1\n", 1, "not text"),
        ("a: &x [*x]\n", 1, "use no aliases"),
        ("a: " + "[" * 5000, 1, "deep"),
    ],
)
def test_what_is_not_plain_yaml(tmp_path: Path, text: str, line: int, words: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigErrors) as caught:
        read_yaml(tmp_path / "a.yaml")
    [mistake] = caught.value.mistakes
    assert mistake.line == line
    assert words in mistake.message
    assert "\n" not in mistake.message


def test_aliases_that_grow_without_end_are_stopped(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "a.yaml").write_text("\n".join(lines))
    with pytest.raises(ConfigErrors, match="use no aliases"):
        read_yaml(tmp_path / "a.yaml")


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"recipe: a\nsource: b\xe9\n")
    with pytest.raises(ConfigErrors, match=r"a\.yaml:2: found the byte 0xe9; save it as UTF-8"):
        read_yaml(tmp_path / "a.yaml")


def test_file_that_is_too_long(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"#" * 250_001)
    with pytest.raises(ConfigErrors, match="over 250,000 bytes; split it"):
        read_yaml(tmp_path / "a.yaml")


def test_a_pipe_or_folder_in_the_place_of_a_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe.yaml", "folder.yaml"):
        with pytest.raises(ConfigErrors, match="the file is not a file"):
            read_yaml(tmp_path / name)
