"""JSON schemas as the providers can hold a model to them, or None where one cannot be.

Answers are checked against the recipe's own schema when they land, so a schema here may be
narrower than it (no other properties), or leave a bound to the model's reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .json_values import as_dict, as_list

__all__ = ["anthropic_schema", "openai_schema"]

# https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". What is not
# listed there (bounds of strings, oneOf, not) makes OpenAI refuse a strict schema.
OPENAI_WORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"$ref", "$defs", "description", "title", "pattern", "format", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "$schema"}
)
OPENAI_DEPTH = 10

# The words that the SDK's own `transform_schema` keeps (anthropic 2.14, lib/_parse/_transform.py)
# but `allOf`: no object fits two of its members once they are closed.
ANTHROPIC_WORDS = frozenset(
    {"type", "properties", "required", "items", "enum", "const", "anyOf", "$ref"}
    | {"description", "title", "format", "minItems", "default"}
)
INSIDE = "#/$defs/"
# One of these must say what a value is.
SAYING = ("type", "properties", "enum", "const", "anyOf", "$ref")
# Bounds that may be told to the model in words; any other word makes a schema inexpressible.
BOUNDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "pattern", "maxItems", "uniqueItems", "examples"}
)
FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def openai_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema for `strict`: every property required, no others; None when it asks for more."""
    if schema.get("type") != "object":
        return None
    return _openai(schema, 0)


def anthropic_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema for `output_config`, bounds moved into descriptions; None when it cannot be."""
    definitions = as_dict(schema.get("$defs"))
    closed = _anthropic({key: schema[key] for key in schema if key not in ("$defs", "$schema")})
    inner = {name: _anthropic(as_dict(each)) for name, each in definitions.items()}
    if closed is None or None in inner.values() or _recursive(definitions):
        return None
    return {**closed, "$defs": inner} if inner else closed


def _openai(schema: Mapping[str, Any], depth: int) -> dict[str, Any] | None:
    if not OPENAI_WORDS.issuperset(schema) or depth > OPENAI_DEPTH:
        return None
    if schema.keys().isdisjoint(("type", "anyOf", "$ref")):
        return None
    closed = {key: value for key, value in schema.items() if key != "$schema"}
    if "properties" in schema or schema.get("type") == "object":
        properties = as_dict(schema.get("properties"))
        if schema.get("additionalProperties", False) is not False:
            return None
        if set(as_list(schema.get("required"))) != set(properties):
            return None
        closed["additionalProperties"] = False
    for key in ("properties", "$defs"):
        if key in schema:
            inner = {
                name: _openai(as_dict(each), depth + 1)
                for name, each in as_dict(schema[key]).items()
            }
            if None in inner.values():
                return None
            closed[key] = inner
    if "items" in schema:
        closed["items"] = _openai(as_dict(schema["items"]), depth + 1)
    if "anyOf" in schema:
        closed["anyOf"] = [_openai(as_dict(each), depth) for each in as_list(schema["anyOf"])]
    if closed.get("items", 0) is None or None in as_list(closed.get("anyOf")):
        return None
    return closed


def _anthropic(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    if schema.get("additionalProperties", False) is not False or schema.keys().isdisjoint(SAYING):
        return None
    if not str(schema.get("$ref", INSIDE)).startswith(INSIDE):
        return None
    words = set(schema) - {"additionalProperties"}
    bounds = {key: schema[key] for key in sorted(words & BOUNDS)}
    if schema.get("minItems", 0) not in (0, 1):
        bounds["minItems"] = schema["minItems"]
    if "format" in schema and schema["format"] not in FORMATS:
        bounds["format"] = schema["format"]
    if not words <= ANTHROPIC_WORDS | BOUNDS or isinstance(schema.get("items"), list | bool):
        return None
    closed = {key: schema[key] for key in schema if key in words and key not in bounds}
    if "properties" in schema or schema.get("type") == "object":
        inner = {
            name: _anthropic(as_dict(each))
            for name, each in as_dict(schema.get("properties")).items()
        }
        if None in inner.values():
            return None
        closed |= {"type": "object", "properties": inner, "additionalProperties": False}
    if "items" in schema:
        closed["items"] = _anthropic(as_dict(schema["items"]))
    if "anyOf" in schema:
        closed["anyOf"] = [_anthropic(as_dict(each)) for each in as_list(schema["anyOf"])]
    if closed.get("items", 0) is None or None in as_list(closed.get("anyOf")):
        return None
    if bounds:
        told = "{" + ", ".join(f"{key}: {value}" for key, value in bounds.items()) + "}"
        about = schema.get("description")
        closed["description"] = f"{about}\n\n{told}" if about else told
    return closed


def _recursive(definitions: Mapping[str, Any]) -> bool:
    """Whether a definition leads back to itself, which `output_config` does not take."""
    leads = {name: _references(each) for name, each in definitions.items()}
    for name in leads:
        seen: set[str] = set()
        open_names = list(leads[name])
        while open_names:
            reference = open_names.pop()
            if reference == name:
                return True
            if reference not in seen:
                seen.add(reference)
                open_names.extend(leads.get(reference, ()))
    return False


def _references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set[str]().union(*(_references(each) for each in as_list(value)))
    found = set[str]()
    for key, each in as_dict(value).items():
        if key == "$ref" and isinstance(each, str):
            found.add(each.rpartition("/")[2])
        else:
            found |= _references(each)
    return found
