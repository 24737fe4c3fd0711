from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes_orchestration.errors import StepError
from recipes_orchestration.steps import registry
from recipes_orchestration.steps.registry import BUILT_IN, load_operation, operation_names
from recipes_orchestration.steps.step import Operation

MODULE = """
from recipes_orchestration.steps.step import step

def words(page, context):
    '''Counts the words.

    More about it.
    '''
    return 1

@step(version="7", kinds=("mine",))
def better(page, context):
    return 2

class Tools:
    @staticmethod
    def inside(page, context):
        return 3

def one(page): ...
def three(page, context, more): ...
def optional(page, context, more=1): ...
async def later(page, context): ...
def stream(page, context):
    yield 1
number = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path, whose modules and entry points are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    registry._registered.cache_clear()
    yield tmp_path
    registry._registered.cache_clear()
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]


@pytest.fixture
def my_steps(folder: Path) -> str:
    (folder / "my_steps_module.py").write_text(MODULE)
    return "my_steps_module"


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_built_in_operation_has_its_name_a_sentence_and_a_check(name: str) -> None:
    operation = load_operation(name)
    assert operation.name == name
    assert operation.about.endswith((".", "`")), operation.about
    assert operation.check is not None
    assert operation.kinds


def test_built_in_operations_load_without_their_heavy_packages() -> None:
    program = (
        "import sys\n"
        "from recipes_orchestration.steps.registry import load_operation, operation_names\n"
        "from recipes_orchestration.steps.extras import missing\n"
        "for name in operation_names():\n"
        "    operation = load_operation(name); operation.check({}); missing(operation)\n"
        "heavy = {'cv2', 'rapidocr', 'onnxruntime', 'spacy', 'wordllama', 'dagster'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_plain_function_becomes_an_operation_of_version_1(my_steps: str) -> None:
    operation = load_operation(f"{my_steps}:words")
    assert (operation.name, operation.version) == (f"{my_steps}:words", "1")
    assert operation.about == "Counts the words."


def test_a_decorated_function_is_used_as_it_is(my_steps: str) -> None:
    operation = load_operation(f"{my_steps}:better")
    assert (operation.name, operation.version, operation.kinds) == ("better", "7", ("mine",))


def test_the_path_after_the_colon_may_have_dots(my_steps: str) -> None:
    assert load_operation(f"{my_steps}:Tools.inside").function(None, None) == 3  # type: ignore[arg-type]


def test_more_arguments_are_allowed_when_they_have_defaults(my_steps: str) -> None:
    assert isinstance(load_operation(f"{my_steps}:optional"), Operation)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("wrods", "has no 'wrods' (did you mean 'words'?)"),
        ("Tools.outside", "has no 'outside'"),
        ("one", "takes (page), but a step is called with two arguments: (page, context)"),
        ("three", "takes (page, context, more), but"),
        ("number", "is a int, not a function (page, context)"),
        ("Tools", "is a class, not a function (page, context)"),
        ("later", "is an async or generator function"),
        ("stream", "is an async or generator function"),
    ],
)
def test_what_is_no_step_function_is_refused_with_what_it_is(
    my_steps: str, path: str, words: str
) -> None:
    with pytest.raises(StepError) as caught:
        load_operation(f"{my_steps}:{path}")
    assert words in str(caught.value)
    assert f"{my_steps}:{path}" in str(caught.value)


def test_an_unknown_name_gets_a_suggestion_and_all_names() -> None:
    with pytest.raises(StepError, match=r"did you mean 'lines'\?") as caught:
        load_operation("line")
    for name in operation_names():
        assert name in str(caught.value)
    assert "module:function" in str(caught.value)


@pytest.mark.parametrize("run", ["", "a:b:c", "a b:c", "../x:y", "os:", ":x", "1a:b", "x:y()"])
def test_what_is_neither_a_name_nor_module_and_function_imports_nothing(run: str) -> None:
    before = set(sys.modules)
    with pytest.raises(StepError, match="There is no operation"):
        load_operation(run)
    assert set(sys.modules) == before


def test_a_module_that_is_not_there_says_where_to_put_it(folder: Path) -> None:
    with pytest.raises(StepError, match=r"No module named 'nowhere_to_be'.*project folder"):
        load_operation("nowhere_to_be.found:step")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import absent_package_xyz", "ModuleNotFoundError: No module named 'absent_package_xyz'"),
        ("def broken(:", "SyntaxError"),
        ("raise RuntimeError('the scale is off')", "RuntimeError: the scale is off"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
    ],
)
def test_a_module_that_fails_is_named_with_its_own_words(
    folder: Path, source: str, words: str
) -> None:
    (folder / "failing_steps_module.py").write_text(source)
    with pytest.raises(StepError) as caught:
        load_operation("failing_steps_module:anything")
    assert words in str(caught.value)
    assert "failing_steps_module" in str(caught.value)
    assert "was not found" not in str(caught.value)


def _install(folder: Path, entries: str) -> None:
    made = folder / "their_steps-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: their-steps\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\n{entries}")


def test_another_package_registers_a_name_by_entry_point(folder: Path) -> None:
    (folder / "their_steps_module.py").write_text(MODULE)
    _install(folder, "stamps = their_steps_module:better\n")
    assert "stamps" in operation_names()
    assert load_operation("stamps").version == "7"


def test_a_registered_name_cannot_take_the_place_of_a_built_in_one(folder: Path) -> None:
    (folder / "their_steps_module.py").write_text(MODULE)
    _install(folder, "read = their_steps_module:better\n")
    assert load_operation("read").extra == "ocr"
    assert operation_names().count("read") == 1


def test_a_registered_name_whose_package_is_broken_says_so(folder: Path) -> None:
    _install(folder, "stamps = not_there_at_all:better\n")
    assert "stamps" in operation_names()
    with pytest.raises(StepError, match=r"'stamps'.*not_there_at_all"):
        load_operation("stamps")
