"""The places of a project: those that need no entry, and those of `places:` in `project.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Imported for what they register.
from . import job_settings as _job_settings
from . import place_settings as _place_settings
from .project_files import PlaceSettings, place_kinds
from .project_mistakes import choose, validate
from .yaml_files import Mistake, YamlFile, quoted

__all__ = ["SAME", "Places", "known_places", "nameable_kinds", "read_places"]

assert _job_settings, _place_settings

SAME = "same"
"""In a recipe: the place of the steps that the step needs."""

_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")


@dataclass(frozen=True)
class Places:
    """What a step's `place` may be.

    `kinds` says of which kind each place is that a recipe may name. `settings` has those that are
    told all they need; `untold` are those that need an entry and have none. `whole` is False when
    `project.yaml` could not be read, so that a recipe may name others too.
    """

    kinds: Mapping[str, str]
    settings: Mapping[str, PlaceSettings] = field(default_factory=dict[str, PlaceSettings])
    untold: frozenset[str] = frozenset()
    whole: bool = True


def nameable_kinds() -> list[str]:
    """The kinds of which there can be several places, each under a name of one's own."""
    return sorted(name for name, model in place_kinds().items() if model.may_be_named)


def known_places() -> Places:
    """Those that are known without a `project.yaml`: one of each kind."""
    return Places({kind: kind for kind in place_kinds()}, whole=False)


def read_places(file: YamlFile, given: Any) -> tuple[Places, list[Mistake]]:
    """The places of a project, and what is wrong with its `places:`.

    `given` is what stands there. A kind that needs nothing told has a place of its name always.
    """
    told: dict[str, Any] = given if isinstance(given, dict) else {}
    models = place_kinds()
    mistakes: list[Mistake] = []
    kinds = {kind: kind for kind in models}
    settings: dict[str, PlaceSettings] = {}
    for name, inner in told.items():
        kind, wrong = _kind(file, name, inner)
        mistakes += wrong
        # A name with a wrong kind is no second mistake where a recipe uses it.
        kinds.setdefault(name, kind or name)
        if kind is not None:
            place, wrong = validate(file, models[kind], _without_kind(inner), ("places", name))
            mistakes += wrong
            if place is not None:
                settings[name] = place
    for kind in models.keys() - told.keys():
        place, _ = validate(file, models[kind], {}, ("places", kind))
        if place is not None:
            settings[kind] = place
    untold = frozenset(models.keys() - told.keys() - settings.keys())
    return Places(kinds, settings, untold), mistakes


def _kind(file: YamlFile, name: str, inner: Any) -> tuple[str | None, list[Mistake]]:
    """The kind of the place that is called so, or what is wrong with the name or the kind."""
    models = place_kinds()
    nameable = nameable_kinds()
    if inner is not None and not isinstance(inner, dict) and name not in models:
        return None, []  # what may stand in `places:` has told so already
    fields: dict[str, Any] = inner if isinstance(inner, dict) else {}
    says, kind = "kind" in fields, fields.get("kind", name)
    where = ("places", name)
    if says and name in models:
        if kind == name:
            return name, []
        what = (
            f"place {quoted(name)}: kind: found {quoted(str(kind))}, but {name} is a kind itself; "
            "take the kind away, or give the place another name"
        )
        return None, [file.mistake((*where, "kind"), what)]
    if says and kind not in nameable:
        found = "nothing" if kind is None else quoted(str(kind))
        what = f"place {quoted(name)}: kind: found {found}{choose(str(kind), nameable)}"
        return None, [file.mistake((*where, "kind"), what)]
    if not says and name not in models:
        what = f"places: found the unknown place {quoted(name)}"
        rest = f" (a name of your own has a kind: {' or '.join(nameable)})"
        return None, [file.mistake(where, f"{what}{rest}{choose(name, models)}", key=True)]
    if not _NAME.fullmatch(name) or name == SAME:
        allowed = "letters a-z and A-Z, digits and _"
        taken = ", which in a recipe is the place of the needed steps" if name == SAME else ""
        what = f"places: found the name {quoted(name)}{taken}; allowed: {allowed}"
        return None, [file.mistake(where, what, key=True)]
    return str(kind), []


def _without_kind(inner: Any) -> Any:
    if isinstance(inner, dict):
        return {key: value for key, value in inner.items() if key != "kind"}
    return inner or {}
