"""The floors of the house: imports point downwards only, read from the source by `ast`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import recipes_orchestration

ROOT = Path(recipes_orchestration.__file__).parent
NAME = ROOT.name

# From the top. Modules of one floor may import one another; a lower floor never a higher one.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"console", "cli", "commands"}),
    frozenset({"definitions"}),
    frozenset({"orchestration"}),
    frozenset({"engine"}),
    frozenset({"channels"}),
    frozenset({"new_project", "demo_archive", "demo_texts"}),
    frozenset(
        {
            "alert_settings",
            "job_settings",
            "job_values",
            "place_settings",
            "project",
            "project_files",
        }
        | {"project_mistakes", "project_places", "project_schemas"}
        | {
            "model_checks",
            "picture_checks",
            "prompt_files",
            "recipe_checks",
            "recipe_drafts",
            "recipe_files",
        }
        | {"recipe_steps", "yaml_files"}
    ),
    frozenset({"ledger", "library"}),
    frozenset({"places"}),
    frozenset({"providers"}),
    frozenset({"runner"}),
    frozenset({"steps"}),
    frozenset({"pages"}),
    frozenset({"collecting", "errors", "rehearsal", "recipe", "stages", "still_ours"}),
)
PARTS = frozenset[str]().union(*FLOORS)
MAX_LINES = 300


@dataclass(frozen=True)
class Import:
    """One imported module: `target` is a part of this package or a top-level package."""

    file: Path
    line: int
    target: str
    own: bool
    lazy: bool

    @property
    def part(self) -> str:
        return part_of(self.file)

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.target}"


def part_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return sorted(file for file in ROOT.rglob("*.py") if "__pycache__" not in file.parts)


def imports_of(file: Path, text: str | None = None) -> list[Import]:
    """Every import, those inside functions and for type checkers alone too."""
    found: list[Import] = []
    tree = ast.parse(file.read_text() if text is None else text)
    package = [NAME, *file.relative_to(ROOT).parts[:-1]]

    def add(node: ast.stmt, name: str, lazy: bool) -> None:
        parts = name.split(".")
        own = parts[0] == NAME and len(parts) > 1
        found.append(Import(file, node.lineno, parts[1] if own else parts[0], own, lazy))

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                add(node, alias.name, lazy)
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            bare = module == NAME
            for name in [f"{module}.{alias.name}" for alias in node.names] if bare else [module]:
                add(node, name, lazy)
        inside = lazy or happens_later(node)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, lazy=False)
    return found


def happens_later(node: ast.AST) -> bool:
    """Whether what stands inside is not imported with the module: functions, and type checkers'."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def all_imports() -> list[Import]:
    return [each for file in modules() for each in imports_of(file)]


def floor(part: str) -> int:
    return next(number for number, parts in enumerate(FLOORS) if part in parts)


def upward(imports: list[Import]) -> list[str]:
    return [
        str(each)
        for each in imports
        if each.own
        and each.part in PARTS
        and each.target in PARTS
        and floor(each.target) < floor(each.part)
    ]


def test_imports_point_downwards_only():
    assert upward(all_imports()) == []


def test_ledger_and_library_do_not_know_each_other():
    assert [
        str(each)
        for each in all_imports()
        if each.own and {each.part, each.target} == {"ledger", "library"}
    ] == []


def test_the_foundation_imports_nothing_above_it():
    foundation = FLOORS[-1]
    assert [
        str(each)
        for each in all_imports()
        if each.part in foundation and each.own and each.target not in foundation
    ] == []


def test_every_module_has_a_floor():
    assert {part_of(file) for file in modules()} - {"__init__"} <= PARTS


def breaks_dagster_rule(each: Import) -> bool:
    outside = each.part not in ("orchestration", "definitions")
    return outside and not each.own and is_dagster(each)


def is_dagster(each: Import) -> bool:
    """The runner writes Dagster's messages with a package that knows nothing of Dagster."""
    pipes = each.part == "runner" and each.target == "dagster_pipes"
    return each.target.startswith("dagster") and not pipes


def test_dagster_is_imported_in_orchestration_and_definitions_only():
    assert [
        str(each) for each in all_imports() if breaks_dagster_rule(each) and each.part != "commands"
    ] == []


def test_commands_reach_dagster_through_orchestration_and_lazily():
    assert [
        str(each)
        for each in all_imports()
        if each.part in ("cli", "commands")
        and (
            breaks_dagster_rule(each)
            or (each.own and each.target == "orchestration" and not each.lazy)
        )
    ] == []


@pytest.mark.parametrize("package", ["dagster", "sqlalchemy"])
def test_what_runs_in_workers_knows_neither_dagster_nor_the_ledger(package: str):
    workers = ("runner", "steps", "pages")
    assert [
        str(each)
        for each in all_imports()
        if each.part in workers
        and (is_dagster(each) if package == "dagster" else each.target.startswith(package))
    ] == []


def test_no_module_is_longer_than_300_lines():
    lengths = {str(file.relative_to(ROOT)): file.read_text().count("\n") for file in modules()}
    assert {file: lines for file, lines in lengths.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from ..engine.look import look",
        "from .. import engine",
        "import recipes_orchestration.engine.look",
        "def late():\n    from ..engine import look",
    ],
)
def test_an_import_that_points_upwards_is_seen(text: str):
    assert upward(imports_of(ROOT / "pages" / "page.py", text))
