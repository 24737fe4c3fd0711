"""What may stand in `project.yaml`."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import Field

from .alert_settings import AlertSettings
from .providers.prices import ModelPrices
from .recipe_files import Name, Settings

__all__ = [
    "Limits",
    "LocalSettings",
    "PlaceSettings",
    "PriceSettings",
    "ProjectFile",
    "SourceSettings",
    "SpendSettings",
    "place_kinds",
    "register_place",
]

Options = dict[str, Any]


class SourceSettings(Settings):
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


class PlaceSettings(Settings):
    """Base of what a place may be told in `project.yaml`.

    `may_be_named`: there can be several of the kind, each under a name of one's own.
    """

    may_be_named: ClassVar[bool] = False


class LocalSettings(PlaceSettings):
    """This machine: a pool of processes."""

    workers: int | None = Field(
        default=None, ge=1, le=256, description="Processes; by default one a core, at most four."
    )

    @property
    def processes(self) -> int:
        """How many processes the pool has."""
        return self.workers or min(4, _cores())


class Limits(Settings):
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
    inline_wait: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="A run waits so long for work elsewhere before it leaves the queue to wait. "
        "Seconds.",
    )
    poll_seconds: float = Field(
        default=5.0, gt=0, le=3600, description="How often a waiting run asks. Seconds."
    )
    tries: int = Field(default=2, ge=1, le=100, description="A page that failed so often is held.")


class PriceSettings(Settings):
    """What a model costs, in dollars per million tokens; it wins over the listed price."""

    input: float = Field(ge=0, le=1_000_000, description="For the question's tokens.")
    output: float = Field(
        default=0.0, ge=0, le=1_000_000, description="For the answer's tokens, thinking included."
    )
    cached: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="For the question's tokens read from a cache; by default as for others.",
    )
    batch_share: float = Field(
        default=0.5, ge=0, le=1, description="What part of these prices a batch costs."
    )

    @property
    def prices(self) -> ModelPrices:
        """The same as exact decimals, as they are written."""
        return ModelPrices(
            input=Decimal(str(self.input)),
            output=Decimal(str(self.output)),
            cached=None if self.cached is None else Decimal(str(self.cached)),
            batch_share=Decimal(str(self.batch_share)),
        )


class SpendSettings(Settings):
    """The most that may be paid to places, in dollars; what would pass it is not sent."""

    project: float | None = Field(
        default=None, ge=0, le=1_000_000_000, description="By all recipes, for good. Dollars."
    )
    month: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000_000,
        description="By all recipes in one calendar month (UTC). Dollars.",
    )


class ProjectFile(Settings):
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
        default_factory=dict, description="Where steps run, by name; one of your own has a `kind`."
    )
    prices: dict[str, PriceSettings] = Field(
        default_factory=dict, description="What models cost, by the model's name."
    )
    spend: SpendSettings = Field(
        default_factory=SpendSettings, description="The most that may be paid to places."
    )
    alerts: AlertSettings = Field(
        default_factory=AlertSettings,
        description="Whom to tell what a person should know, besides the Dagster log.",
    )
    pages_may_leave: bool = Field(
        default=False,
        description="The project's yes to sending pages, or what was read on them, to places "
        "other than this machine. The recipe or the run must say yes as well.",
    )
    limits: Limits = Field(
        default_factory=Limits,
        description="Bounds on pages and on what a stopped run may lose.",
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
