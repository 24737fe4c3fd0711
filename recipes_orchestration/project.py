"""The project folder: `project.yaml` and `recipes/*.yaml`, checked as one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from .alert_settings import AlertSettings
from .errors import NotFound
from .job_settings import JobSettings
from .project_files import (
    Limits,
    LocalSettings,
    PlaceSettings,
    ProjectFile,
    SourceSettings,
    SpendSettings,
)
from .project_mistakes import choose, validate
from .project_places import Places, known_places, read_places
from .providers.prices import ModelPrices
from .recipe import Deadline, Recipe
from .recipe_checks import check_recipe, check_recipes
from .recipe_drafts import Draft, draft_of, in_order
from .recipe_files import RecipeFile
from .recipe_steps import step_of
from .yaml_files import ConfigErrors, Mistake, YamlFile, read_yaml, shown_path

__all__ = [
    "Limits",
    "LocalSettings",
    "PlaceSettings",
    "Project",
    "SourceSettings",
    "load_project",
    "project_folder",
]

P = TypeVar("P", bound=PlaceSettings)

_REFERENCE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True)
class Project:
    """A checked project folder.

    `library` and the sources' roots are absolute paths or URLs, `${NAME}` is replaced from the
    environment, and each recipe's steps come after what they need. `prices` are the project's own
    by model, in dollars per million tokens, `spend` the most that all of it may cost, `alerts`
    whom to tell. `kinds` says of which kind each place is. `lines` has the line of a recipe
    `(recipe, None)` and of each of its steps `(recipe, step)` in the recipe's file.
    """

    name: str
    folder: Path
    library: str
    ledger_url: str = field(repr=False)
    sources: Mapping[str, SourceSettings]
    places: Mapping[str, PlaceSettings]
    limits: Limits
    recipes: Mapping[str, Recipe]
    library_storage_options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    prices: Mapping[str, ModelPrices] = field(default_factory=dict[str, ModelPrices])
    spend: SpendSettings = field(default_factory=SpendSettings)
    pages_may_leave: bool = False
    alerts: AlertSettings = field(default_factory=AlertSettings)
    kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    lines: Mapping[tuple[str, str | None], int] = field(
        default_factory=dict[tuple[str, str | None], int], repr=False
    )

    def recipe(self, name: str) -> Recipe:
        """The recipe of that name. Raises `NotFound`, saying which there are."""
        if name not in self.recipes:
            raise NotFound(f'There is no recipe "{name}"{choose(name, self.recipes)}')
        return self.recipes[name]

    def source(self, name: str) -> SourceSettings:
        """The source of that name. Raises `NotFound`, saying which there are."""
        if name not in self.sources:
            raise NotFound(f'There is no source "{name}"{choose(name, self.sources)}')
        return self.sources[name]

    def kind_of(self, place: str) -> str:
        """The kind of the place of that name: what it can do, and what opens it."""
        return self.kinds.get(place, place)

    def takes_jobs(self, place: str) -> bool:
        """Whether the runner works there, sent from here as jobs."""
        return isinstance(self.places.get(place), JobSettings)

    @property
    def has_caps(self) -> bool:
        """Whether there is a bound on what anything may cost."""
        caps = [self.spend.project, self.spend.month]
        caps += [recipe.spend for recipe in self.recipes.values()]
        return any(cap is not None for cap in caps)

    @property
    def local(self) -> LocalSettings:
        """Settings of the place `local`."""
        settings = self.places["local"]
        assert isinstance(settings, LocalSettings)
        return settings


def project_folder(folder: Path | str | None = None) -> Path:
    """The folder given, else RECIPES_PROJECT, else the example of a checkout; absolute."""
    given = folder or os.environ.get("RECIPES_PROJECT")
    example = Path(__file__).parent.parent / "examples" / "demo"
    return Path(given or example).expanduser().resolve()


def load_project(folder: Path | str | None = None) -> Project:
    """Reads and checks a project folder, and puts it first on `sys.path` for its own steps.

    Raises `ConfigErrors` with every mistake of its files.
    """
    where = project_folder(folder)
    if not (where / "project.yaml").is_file():
        what = "there is no project.yaml here"
        advice = "make a project with `recipes init DIR` and name it with RECIPES_PROJECT=DIR"
        raise ConfigErrors([Mistake(shown_path(where / "project.yaml"), 1, f"{what}; {advice}")])
    if str(where) not in sys.path:
        sys.path.insert(0, str(where))
    mistakes: list[Mistake] = []
    file = _read(where / "project.yaml", mistakes)
    settings, places = (None, known_places())
    if file is not None:
        settings, places = _project_file(file, mistakes)
    sources = None if settings is None else settings.sources
    recipe_files = list(_recipe_files(where, mistakes))
    drafts = [draft_of(recipe_file, places.kinds) for recipe_file in recipe_files]
    recipes: dict[str, Recipe] = {}
    lines: dict[tuple[str, str | None], int] = {}
    mistakes += check_recipes(drafts)
    for draft in drafts:
        model, wrong = validate(draft.file, RecipeFile, draft.file.value)
        others = [other for other in drafts if other is not draft]
        wrong += check_recipe(draft, others, sources=sources, places=places)
        mistakes += wrong
        if model is not None and not wrong:
            recipes[model.recipe] = _recipe(model, draft)
            lines[model.recipe, None] = draft.file.line(("recipe",))
            for step in draft.steps:
                lines[model.recipe, step.name] = draft.file.line(("steps", step.index))
    if mistakes or file is None or settings is None:
        raise ConfigErrors(sorted(set(mistakes)))
    return Project(
        name=settings.name,
        folder=where,
        library=_place_of(where, settings.library),
        library_storage_options=settings.library_storage_options,
        prices={model: price.prices for model, price in settings.prices.items()},
        spend=settings.spend,
        alerts=settings.alerts,
        pages_may_leave=settings.pages_may_leave,
        ledger_url=_ledger_url(where, os.environ.get("RECIPES_LEDGER_URL") or settings.ledger),
        sources={
            name: source.model_copy(update={"root": _place_of(where, source.root)})
            for name, source in settings.sources.items()
        },
        places=places.settings,
        kinds=places.kinds,
        limits=settings.limits,
        recipes=recipes,
        lines=lines,
    )


def _read(path: Path, mistakes: list[Mistake]) -> YamlFile | None:
    try:
        return read_yaml(path)
    except ConfigErrors as error:
        mistakes += error.mistakes
        return None


def _recipe_files(folder: Path, mistakes: list[Mistake]) -> Iterator[YamlFile]:
    paths = sorted(
        path
        for pattern in ("*.yaml", "*.yml")
        for path in (folder / "recipes").glob(pattern)
        if not path.name.startswith(".")
    )
    if not paths:
        what = "there is no recipe file (*.yaml) in it; `recipes init DIR` writes one to begin with"
        mistakes.append(Mistake(shown_path(folder / "recipes"), 1, what))
    for path in paths:
        file = _read(path, mistakes)
        if file is not None:
            yield file


def _project_file(file: YamlFile, mistakes: list[Mistake]) -> tuple[ProjectFile | None, Places]:
    value = {
        key: inner if key == "name" else _from_environment(file, inner, (key,), mistakes)
        for key, inner in file.value.items()
    }
    settings, wrong = validate(file, ProjectFile, value)
    mistakes += wrong
    places, wrong = read_places(file, value.get("places"))
    mistakes += wrong
    return settings, places


def _from_environment(
    file: YamlFile, value: Any, loc: tuple[str | int, ...], mistakes: list[Mistake]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _from_environment(file, inner, (*loc, key), mistakes)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _from_environment(file, inner, (*loc, index), mistakes)
            for index, inner in enumerate(value)
        ]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            what = f"found {match[0]}, but the environment has no {match[1]}; set it"
            mistakes.append(file.mistake(loc, what))
            return match[0]
        return found

    return _REFERENCE.sub(replace, value)


def _recipe(model: RecipeFile, draft: Draft) -> Recipe:
    pairs = zip(model.steps, draft.steps, strict=True)  # a recipe without mistakes was read whole
    steps = [step_of(step, draft.file, drafted) for step, drafted in pairs]
    return Recipe(
        name=model.recipe,
        source=model.source,
        steps=tuple(in_order(steps, lambda step: step.name, lambda step: step.needs)),
        when=model.when,
        max_held=model.max_held,
        description=model.description,
        path=str(draft.file.path),
        spend=None if model.spend is None else Decimal(str(model.spend)),
        pages_may_leave=model.consent is not None,
        deadlines={
            step.name: Deadline(step.deadline, step.on_deadline == "calls")
            for step in model.steps
            if step.deadline is not None
        },
    )


def _place_of(folder: Path, given: str) -> str:
    return given if "://" in given else str((folder / Path(given).expanduser()).resolve())


def _ledger_url(folder: Path, given: str | None) -> str:
    """The ledger's URL, a path or a relative SQLite URL being one from the project folder on."""
    sqlite = re.match(r"(sqlite(?:\+\w+)?):///(?!/)(.+)", given or "")
    if given and "://" in given and sqlite is None:
        return given
    scheme, file = sqlite.groups() if sqlite else ("sqlite", given or ".recipes/ledger.db")
    path = folder / Path(file).expanduser()
    # A URL has no way to write it: what follows would be taken for options.
    if "?" in (str(folder) if sqlite else str(path)):
        what = f"the ledger's path has a ? in it: {path}; rename the folder or set another ledger"
        raise ConfigErrors([Mistake(shown_path(folder / "project.yaml"), 1, what)])
    return f"{scheme}:///{path}"
