"""Places opened from their settings: the one registry of what a place's name stands for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
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


def _late(module: str, function: str) -> Opener:
    """Of a module beside this one that loads what local work can do without."""

    def opener(project: Project, name: str) -> Place:
        found: Opener = getattr(import_module(f".{module}", __package__), function)
        return found(project, name)

    return opener


_openers: dict[str, Opener] = {
    "local": _local,
    **dict.fromkeys(CLOUD_PLACES, _late("cloud", "open_cloud_place")),
    "slurm": _late("jobs", "open_slurm_place"),
    "hf_jobs": _late("hf_jobs", "open_hf_jobs_place"),
}


def register_opener(name: str, opener: Opener) -> None:
    """Makes a kind of places known; its settings are registered with `register_place`."""
    if _openers.setdefault(name, opener) is not opener:
        raise ValueError(f"a place {name} is registered already")


def open_place(project: Project, name: str) -> Place:
    """The place of that name, opened by its kind. Raises `NotFound` when nothing opens that."""
    kind = project.kind_of(name)
    if kind not in _openers:
        for point in entry_points(group=ENTRY_POINTS, name=kind):
            register_opener(kind, point.load())
    if kind not in _openers:
        raise NotFound(f"There is no place {kind}; known are {', '.join(sorted(_openers))}.")
    return _openers[kind](project, name)
