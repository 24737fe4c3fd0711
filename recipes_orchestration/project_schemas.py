"""JSON Schemas of the project's files, by which editors complete and check them.

`python -m recipes_orchestration.project_schemas` writes them anew after the models change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .job_settings import JOB_PLACES
from .place_settings import CLOUD_PLACES
from .project_files import ProjectFile, place_kinds
from .project_places import SAME
from .recipe_files import RecipeFile
from .steps.registry import BUILT_IN, ON_MODELS

__all__ = ["PROJECT_SCHEMA", "RECIPE_SCHEMA", "SCHEMA_FOLDER", "schemas", "write_schemas"]

PROJECT_SCHEMA = "project.schema.json"
RECIPE_SCHEMA = "recipe.schema.json"
SCHEMA_FOLDER = Path(__file__).parent / "schemas"

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """The text of each schema by its file name."""
    return {PROJECT_SCHEMA: _text(_project()), RECIPE_SCHEMA: _text(_recipe())}


def write_schemas(folder: Path) -> list[Path]:
    """Writes the schemas into a folder, which is made; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for name, text in schemas().items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _project() -> dict[str, Any]:
    schema = ProjectFile.model_json_schema()
    # The places are a registry and not a field each, so that others can be added to it.
    places: dict[str, Any] = {}
    named: list[dict[str, Any]] = []
    # By name: they are registered in whatever order their modules were imported.
    for name, settings in sorted(place_kinds().items()):
        inner = settings.model_json_schema()
        schema["$defs"].update(inner.pop("$defs", {}))
        if settings.may_be_named:
            kind = {"const": name, "description": "What kind of place it is."}
            inner["properties"] = {"kind": kind, **inner["properties"]}
            named.append({**inner, "required": ["kind", *inner.get("required", [])]})
        places[name] = {**inner, "type": ["object", "null"]}
    schema["properties"]["places"] |= {
        "additionalProperties": {"anyOf": named},
        "properties": places,
    }
    return {"$schema": _DRAFT, **schema, "title": "project.yaml of recipes_orchestration"}


def _recipe() -> dict[str, Any]:
    schema = RecipeFile.model_json_schema()
    step = schema["$defs"]["StepFile"]["properties"]
    step["run"]["examples"] = [*dict.fromkeys([*BUILT_IN, *ON_MODELS]), "my_steps:my_function"]
    step["place"]["examples"] = ["local", *CLOUD_PLACES, *JOB_PLACES, SAME]
    # Written by a word that becomes None when it is read.
    step["image"]["anyOf"] = [step["image"]["anyOf"][0], {"enum": ["none", False]}]
    schema["properties"]["when"]["examples"] = ["manual", "new_pages", "0 22 * * *"]
    return {"$schema": _DRAFT, **schema, "title": "A recipe of recipes_orchestration"}


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_schemas(SCHEMA_FOLDER)
