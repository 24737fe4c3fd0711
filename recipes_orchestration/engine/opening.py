"""Places opened from their settings: the one registry of what a place's name stands for."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from ..errors import NotFound
from ..place_settings import CLOUD_PLACES
from ..places.local import LocalPlace
from ..places.place import Place
from ..project import Project

__all__ = ["ENTRY_POINTS", "open_place", "register_opener"]

ENTRY_POINTS = "recipes_orchestration.places"
"""The entry point group in which another package registers a place: `(project, name) -> Place`."""

Opener = Callable[[Project, str], Place]


def _local(project: Project, name: str) -> Place:  # noqa: ARG001
    limits = project.limits
    return LocalPlace(
        workers=project.local.processes,
        page_timeout=limits.page_timeout,
        land_every_pages=limits.land_every_pages,
        land_every_seconds=limits.land_every_seconds,
    )


def _cloud(project: Project, name: str) -> Place:
    from .cloud import open_cloud_place  # loads a provider's SDK, which local work can do without

    return open_cloud_place(project, name)


_openers: dict[str, Opener] = {"local": _local, **dict.fromkeys(CLOUD_PLACES, _cloud)}


def register_opener(name: str, opener: Opener) -> None:
    """Makes a place known by its name; its settings are registered with `register_place`."""
    if _openers.setdefault(name, opener) is not opener:
        raise ValueError(f"a place {name} is registered already")


def open_place(project: Project, name: str) -> Place:
    """The place of that name. Raises `NotFound` when none is registered under it."""
    if name not in _openers:
        for point in entry_points(group=ENTRY_POINTS, name=name):
            register_opener(name, point.load())
    if name not in _openers:
        raise NotFound(f"There is no place {name}; known are {', '.join(sorted(_openers))}.")
    return _openers[name](project, name)
