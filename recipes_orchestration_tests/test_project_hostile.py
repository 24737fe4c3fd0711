"""Whatever stands in a project's files, reading them gives a project or a list of mistakes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recipes_orchestration.project import Project, load_project
from recipes_orchestration.yaml_files import ConfigErrors, read_yaml

pytestmark = pytest.mark.usefixtures("restored_path")

PROJECT: dict[str, Any] = {
    "name": "a",
    "library": "library",
    "ledger": "l.db",
    "library_storage_options": {},
    "sources": {"letters": {"root": "pages", "batch_size": 5, "storage_options": {"a": 1}}},
    "places": {"local": {"workers": 2}},
    "limits": {"tries": 2},
}
RECIPE: dict[str, Any] = {
    "recipe": "letters",
    "source": "letters",
    "when": "manual",
    "max_held": 0.1,
    "steps": [
        {"name": "lines", "run": "lines", "place": "local", "params": {}},
        {"name": "read", "run": "read", "needs": ["lines"]},
    ],
}

HUGE = "k" * 1_600
LONG: list[dict[str, Any]] = [
    RECIPE | {"source": HUGE},
    RECIPE | {"when": HUGE},
    RECIPE | {"recipe": HUGE},
    RECIPE | {"steps": [{"name": HUGE, "run": "text", "needs": [HUGE]}]},
    RECIPE | {"steps": [{"name": "a", "run": HUGE, "needs": [HUGE], "place": HUGE}]},
    RECIPE | {"steps": [{"name": "a", "run": f"a:{HUGE}", "params": HUGE}] * 2},
    RECIPE | {HUGE[:1000]: HUGE},
    RECIPE | {"steps": [{"name": "a", "run": "text", HUGE[:1000]: 1, "params": {HUGE[:1000]: 1}}]},
]
"""Long texts everywhere; YAML takes no key over 1024 characters."""

_words = st.one_of(
    st.sampled_from(["lines", "read", "letters", "local", "pages", "name", "${A}", "${", "a:b"]),
    st.sampled_from(["json:dumps", "os:sep", "\x00", "a\nb: c", "../x", "\u2028", ""]),
    st.text(max_size=8),
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [at for key in keys for at in spots(value[key])]


@st.composite
def damaged(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(0, 3))):
        found = spots(value)
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        if isinstance(container, dict) and draw(st.booleans()):
            container[draw(_words)] = container.pop(key)
        else:
            container[key] = draw(_values)
    return value


def outcome(read: Callable[[], Any]) -> tuple[Any, ConfigErrors | None]:
    try:
        return read(), None
    except ConfigErrors as error:
        return None, error


def check(error: ConfigErrors) -> None:
    assert error.mistakes
    assert len(str(error).split("\n")) == len(error.mistakes)
    assert all(mistake.line >= 1 and len(str(mistake)) < 1_500 for mistake in error.mistakes)
    assert "hunter2" not in str(error)


_shared_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@_shared_folder
@given(
    project=st.just(PROJECT) | damaged(PROJECT),
    recipe=damaged(RECIPE) | st.sampled_from(LONG),
)
def test_a_damaged_value_is_a_mistake_and_never_a_crash(
    tmp_path: Path, project: dict[str, Any], recipe: dict[str, Any]
) -> None:
    (tmp_path / "recipes").mkdir(exist_ok=True)
    (tmp_path / "project.yaml").write_text(json.dumps(project))
    (tmp_path / "recipes" / "a.yaml").write_text(json.dumps(recipe))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A", "hunter2")
        loaded, error = outcome(lambda: load_project(tmp_path))
    if error is not None:
        assert (project, recipe) != (PROJECT, RECIPE)
        check(error)
    else:
        assert isinstance(loaded, Project)


@_shared_folder
@given(text=st.text(alphabet="ab:-[]{}*&!|>'\"#%@`\n\t \\,?<0\u2028\x85é", max_size=60))
def test_any_text_is_a_mapping_or_mistakes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    read, error = outcome(lambda: read_yaml(path).value)
    if error is not None:
        check(error)
    else:
        assert isinstance(read, dict)


@_shared_folder
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_mapping_or_mistakes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    read, error = outcome(lambda: read_yaml(path).value)
    if error is not None:
        check(error)
    else:
        assert isinstance(read, dict)
