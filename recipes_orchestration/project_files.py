"""What may stand in `project.yaml` and `recipes/*.yaml`."""

from __future__ import annotations

import keyword
import os
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from croniter import croniter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .recipe import MANUAL, NEW_PAGES
from .yaml_files import quoted

__all__ = [
    "LONGEST_RUN",
    "RESERVED_NAMES",
    "Limits",
    "LocalSettings",
    "PlaceSettings",
    "ProjectFile",
    "RecipeFile",
    "SourceSettings",
    "StepFile",
    "place_kinds",
    "register_place",
]

LONGEST_RUN = 300

# Names that Dagster refuses for assets' outputs, inputs and groups.
RESERVED_NAMES = frozenset(
    {
        *("context", "conf", "config", "meta", "arg_dict", "dict", "input_arg_dict"),
        *("output_arg_dict", "int", "str", "float", "bool", "input", "output", "type"),
        *keyword.kwlist,
    }
)


# Less than croniter takes: Dagster carries an older one, which knows no W, and H and R are random.
_ITEM = r"(\*|\?|l|\d+|[a-z]{3})(-(\d+|[a-z]{3}))?(/\d+)?(#\d)?"
_CRON = re.compile(rf"{_ITEM}(,{_ITEM})*( +{_ITEM}(,{_ITEM})*){{4}}", re.IGNORECASE)


def _usable(name: str) -> str:
    if name in RESERVED_NAMES:
        raise ValueError(f'found "{name}", which Dagster keeps for itself; allowed: {name}_')
    return name


def _when(value: str) -> str:
    if value in (MANUAL, NEW_PAGES):
        return value
    if _has_a_next_time(value):
        return value
    raise ValueError(
        f"found {quoted(value)}; allowed: {MANUAL}, {NEW_PAGES} or a cron line of five fields "
        '(minute hour day month weekday), such as "0 22 * * *"'
    )


def _has_a_next_time(cron: str) -> bool:
    if len(cron) > 200 or not _CRON.fullmatch(cron):
        return False
    try:
        croniter(cron, datetime(2024, 1, 1, tzinfo=UTC)).get_next()
    except (ValueError, KeyError):  # what croniter raises for fields and for dates like 30 February
        return False
    return True


Name = Annotated[
    str, Field(min_length=1, max_length=100, pattern="^[A-Za-z0-9_]+$"), AfterValidator(_usable)
]
Options = dict[str, Any]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SourceSettings(_Settings):
    """Where pages come from."""

    root: str = Field(
        min_length=1,
        description="A folder, relative to the project folder, or an fsspec URL such as s3://b/x.",
    )
    batch_size: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="At most so many pages of one folder make a batch.",
    )
    hidden: bool = Field(
        default=False, description="Also take files and folders whose names begin with a dot."
    )
    storage_options: Options = Field(
        default_factory=dict,
        repr=False,
        description="For fsspec, such as endpoint_url. ${NAME} is taken from the environment.",
    )


class PlaceSettings(_Settings):
    """Base of what a place may be told in `project.yaml`."""


class LocalSettings(PlaceSettings):
    """This machine: a pool of processes."""

    workers: int | None = Field(
        default=None, ge=1, le=256, description="Processes; by default one a core, at most four."
    )

    @property
    def processes(self) -> int:
        """How many processes the pool has."""
        return self.workers or min(4, _cores())


class Limits(_Settings):
    """Bounds on pages and on what a stopped run may lose."""

    max_pixels: int = Field(
        default=150_000_000,
        ge=1,
        le=2_000_000_000,
        description="A larger page is held, not decoded.",
    )
    max_file_mb: int = Field(
        default=2_000,
        ge=1,
        le=1_000_000,
        description="A larger file is held, not fetched. Megabytes.",
    )
    page_timeout: float = Field(
        default=600.0, gt=0, le=86_400, description="A page that takes longer is held. Seconds."
    )
    land_every_pages: int = Field(
        default=25,
        ge=1,
        le=100_000,
        description="Results are written after so many pages at the latest.",
    )
    land_every_seconds: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="Results are written after so many seconds at the latest.",
    )
    tries: int = Field(default=2, ge=1, le=100, description="A page that failed so often is held.")


class ProjectFile(_Settings):
    """`project.yaml`: what all recipes of a project share."""

    name: str = Field(
        min_length=1, max_length=100, description="What the project is called in the UI."
    )
    library: str = Field(
        default="library",
        min_length=1,
        description="Where results land: a folder, relative to the project folder, or a URL.",
    )
    library_storage_options: Options = Field(
        default_factory=dict,
        repr=False,
        description="For fsspec, such as endpoint_url. ${NAME} is taken from the environment.",
    )
    ledger: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="A database URL (sqlite:///file or postgresql://...); by default a file in "
        ".recipes/. RECIPES_LEDGER_URL wins over it.",
    )
    sources: dict[Name, SourceSettings] = Field(
        min_length=1, description="Where pages come from, by name."
    )
    places: dict[str, dict[str, Any] | None] = Field(
        default_factory=dict, description="Where steps run, by name."
    )
    limits: Limits = Field(
        default_factory=Limits,
        description="Bounds on pages and on what a stopped run may lose.",
    )


class StepFile(_Settings):
    """One operation on one page."""

    name: Name = Field(description="What the step is called: letters, digits and _.")
    run: str = Field(
        min_length=1,
        max_length=LONGEST_RUN,
        description="A built-in operation, or `module:function`.",
    )
    place: str = Field(default="local", description="Where the step runs.")
    needs: Annotated[tuple[Name, ...], Field(strict=False)] = Field(
        default=(), description="Steps of this recipe whose values this one is given."
    )
    params: dict[str, Any] = Field(
        default_factory=dict, description="The operation's own settings; a part of its key."
    )


class RecipeFile(_Settings):
    """`recipes/*.yaml`: named steps over one source."""

    recipe: Name = Field(description="What the recipe is called: letters, digits and _.")
    source: str = Field(description="A source of project.yaml.")
    description: str | None = Field(default=None, max_length=10_000, description="Shown in the UI.")
    when: Annotated[str, AfterValidator(_when)] = Field(
        default=MANUAL, description='manual, new_pages, or a cron line such as "0 22 * * *".'
    )
    max_held: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Share of a batch's pages that may wait for a person while it goes on.",
    )
    steps: Annotated[tuple[StepFile, ...], Field(strict=False)] = Field(
        min_length=1, description="What is done with each page."
    )


_places: dict[str, type[PlaceSettings]] = {"local": LocalSettings}


def register_place(name: str, settings: type[PlaceSettings]) -> None:
    """Makes a place known to project files, with the model of what it may be told."""
    if _places.setdefault(name, settings) is not settings:
        raise ValueError(f"a place {name} is registered already")


def place_kinds() -> dict[str, type[PlaceSettings]]:
    """The places that are known, by name."""
    return dict(_places)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not say which cores a process may use
        return os.cpu_count() or 1
