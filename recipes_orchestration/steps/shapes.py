"""A quick yes for values that follow a simple JSON schema; whatever it cannot tell, it leaves open.

jsonschema takes some 0.1 ms for a small answer, which is felt at 100,000 answers. Most schemas ask
for types, properties and lists alone, and most answers follow them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["Sure", "surely"]

Sure: TypeAlias = Callable[[Any], bool]
"""True when the value follows the schema for certain; False says nothing."""

# What a number is differs: 1.0 is an integer to JSON Schema, which is left to jsonschema.
_TYPES: dict[str, Sure] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_ANNOTATIONS = frozenset({"title", "description", "default", "examples"})
_WORDS = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum"})


def surely(schema: Any) -> Sure | None:
    """A quick test for a valid schema, or None when it has words beyond the simple ones."""
    if not isinstance(schema, Mapping) or not set(schema) <= _WORDS | _ANNOTATIONS:
        return None
    tests: list[Sure] = []
    if "type" in schema:
        tests.append(_type(schema["type"]))
    if "enum" in schema:
        test = _enum(schema["enum"])
        if test is None:
            return None
        tests.append(test)
    if "items" in schema:
        item = surely(schema["items"])
        if item is None:
            return None
        tests.append(_list(item))
    if not {"properties", "required", "additionalProperties"}.isdisjoint(schema):
        test = _object(schema)
        if test is None:
            return None
        tests.append(test)
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _type(wanted: str | list[str]) -> Sure:
    if isinstance(wanted, str):
        return _TYPES[wanted]
    choices = [_TYPES[each] for each in wanted]
    return lambda value: any(choice(value) for choice in choices)


def _enum(allowed: list[Any]) -> Sure | None:
    # True equals 1 in Python but not in JSON, so texts alone are compared here.
    if not all(isinstance(each, str) for each in allowed):
        return None
    words = frozenset(allowed)
    return lambda value: isinstance(value, str) and value in words


def _list(item: Sure) -> Sure:
    return lambda value: isinstance(value, list) and all(map(item, value))


def _object(schema: Mapping[str, Any]) -> Sure | None:
    others = schema.get("additionalProperties", True)
    if not isinstance(others, bool):
        return None
    properties: dict[str, Sure] = {}
    for name, inner in schema.get("properties", {}).items():
        test = surely(inner)
        if test is None:
            return None
        properties[name] = test
    required = frozenset(schema.get("required", ()))

    def test_object(value: Any) -> bool:
        if not isinstance(value, dict) or not required <= value.keys():
            return False
        for name, each in value.items():
            test = properties.get(name)
            if test is None:
                if not others:
                    return False
            elif not test(each):
                return False
        return True

    return test_object
