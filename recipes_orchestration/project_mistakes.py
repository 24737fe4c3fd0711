"""What pydantic finds wrong in a file, in words for the person who wrote it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_args

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from .yaml_files import Loc, Mistake, YamlFile, quoted

__all__ = ["choose", "keys_of", "label", "model_mistakes", "validate"]

M = TypeVar("M", bound=BaseModel)

_KINDS: dict[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list, such as [a, b]",
    "list_type": "a list, such as [a, b]",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
}
_NAME = "letters a-z and A-Z, digits and _"


def choose(found: str, allowed: Iterable[str]) -> str:
    """The end of a message about a name: what is allowed, and which one may have been meant."""
    names = sorted(allowed)
    close = difflib.get_close_matches(found[:200], names, n=1) or [
        name for name in names if name.lower() == found.lower()
    ]
    meant = f'. Did you mean "{close[0]}"?' if close else ""
    return f"; allowed: {', '.join(names) or 'none'}{meant}"


def label(file: YamlFile, loc: Sequence[str | int]) -> str:
    """A place in a file in words: `step "read": params`."""
    words: list[str] = []
    rest = list(loc)
    if len(rest) > 1 and rest[0] == "steps" and isinstance(rest[1], int):
        named = file.written(("steps", rest[1], "name"))
        words.append(f"step {quoted(named) if named else rest[1] + 1}")
        rest = rest[2:]
    elif len(rest) > 1 and rest[0] in ("sources", "places"):
        words.append(f"{str(rest[0])[:-1]} {quoted(str(rest[1]))}")
        rest = rest[2:]
    if rest:
        words.append(".".join(map(str, rest)))
    return ": ".join(words)


def validate(
    file: YamlFile, model: type[M], value: Any, loc: Loc = ()
) -> tuple[M | None, list[Mistake]]:
    """A part of a file as its model, or what is wrong with it. `loc` is where the part stands."""
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, model_mistakes(file, model, error, loc)


def model_mistakes(
    file: YamlFile, model: type[BaseModel], error: ValidationError, at: Loc = ()
) -> list[Mistake]:
    """Pydantic's errors as mistakes of the file, in the order of its lines."""
    return sorted(
        _mistake(file, model, dict(detail), at)
        for detail in error.errors(include_url=False, include_context=True)
    )


def _mistake(file: YamlFile, model: type[BaseModel], detail: dict[str, Any], at: Loc) -> Mistake:
    inner: Loc = tuple(detail["loc"])
    kind = str(detail["type"])
    of_key = bool(inner) and inner[-1] == "[key]"
    if of_key:
        inner = inner[:-1]
    loc = (*at, *inner)
    if kind in ("extra_forbidden", "missing"):
        holder, _ = _at(model, inner[:-1])
        around = label(file, loc[:-1])
        start = f"{around}: " if around else ""
        names = keys_of(holder) if holder is not None else []
        key = str(inner[-1])
        if kind == "missing":
            return file.mistake(loc[:-1], f'{start}the key "{key}" is missing; add it')
        message = f"{start}found the unknown key {quoted(key)}{choose(key, names)}"
        return file.mistake(loc, message, key=True)
    _, field = _at(model, inner)
    what = _what(file, loc, inner, kind, detail, field, of_key=of_key)
    return file.mistake(loc, f"{label(file, loc)}: {what}", key=of_key)


def _what(
    file: YamlFile,
    loc: Loc,
    inner: Loc,
    kind: str,
    detail: dict[str, Any],
    field: FieldInfo | None,
    *,
    of_key: bool,
) -> str:
    found = _found(file, loc, detail["input"])
    if of_key:
        found = f"the name {quoted(str(inner[-1]))}"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind == "string_pattern_mismatch":
        return f"found {found}; allowed: {_NAME}"
    if kind == "string_type" and isinstance(detail["input"], bool | int | float):
        written = quoted(file.written(loc) or "")
        read_as = "true or false" if isinstance(detail["input"], bool) else "a number"
        bare = written.strip('"')
        return f"found {bare}, which YAML reads as {read_as}; put it in quotes: {written}"
    if kind in ("string_too_short", "too_short"):
        return "found nothing in it; write at least one"
    if kind == "string_too_long":
        return f"found a text that is too long; allowed: {detail['ctx']['max_length']} characters"
    bounds = _bounds(field)
    if kind in _KINDS:
        numbers = kind in ("int_type", "int_from_float", "float_type")
        return f"found {found}; allowed: {_KINDS[kind]}{bounds if numbers else ''}"
    if bounds:
        whole = field is not None and _whole(field)
        return f"found {found}; allowed: a {'whole ' if whole else ''}number{bounds}"
    return f"found {found}; {detail['msg']}"


def _found(file: YamlFile, loc: Loc, value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "keys with values"
    if value is None:
        return "nothing"
    written = file.written(loc)
    text = str(value) if written is None else written
    return quoted(text) if isinstance(value, str) else quoted(text).strip('"')


def _bounds(field: FieldInfo | None) -> str:
    low = high = None
    above = "from"
    for rule in field.metadata if field is not None else []:
        if isinstance(rule, Ge):
            low = rule.ge
        elif isinstance(rule, Gt):
            low, above = rule.gt, "over"
        elif isinstance(rule, Le):
            high = rule.le
    if low is None or high is None:
        return ""
    joint = "to" if above == "from" else "up to"
    return f" {above} {low} {joint} {high}"


def _whole(field: FieldInfo) -> bool:
    kinds = get_args(field.annotation) or (field.annotation,)
    return int in kinds


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys that a model takes, as they are written in a file."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _at(model: type[BaseModel], loc: Sequence[str | int]) -> tuple[Any, FieldInfo | None]:
    """The model that stands at a place below another, and the field that leads there."""
    here: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for part in loc:
        if here is not None and isinstance(part, str) and part in here.model_fields:
            field = here.model_fields[part]
            here = _inner_model(field.annotation)
        # Otherwise the part is an index or a name within the field that was just met.
    return here, field


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = _inner_model(part)
        if found is not None:
            return found
    return None
