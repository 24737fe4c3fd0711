"""What is answered: made from the request alone, so that a batch and a plain call agree."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from .image_tokens import tokens_of_block
from .script import Script

__all__ = [
    "Asked",
    "asked_of",
    "digest_of",
    "encoded",
    "instance",
    "tokens_in",
    "tokens_of",
    "vector",
]

DEEP = 6  # below it only what must be there: a schema may hold itself
_SEPARATORS = "\u2028line\u2029paragraph\u0085next\r\nend"
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_IMAGES = frozenset(
    (
        *("image", "image_url", "input_image", "document", "input_file"),  # types of blocks
        *("inlineData", "inline_data", "fileData", "file_data"),  # keys of Gemini's parts
    )
)
_SILENT = frozenset(("model", "type", "role", "id", "name", "media_type"))


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as far as an answer needs it. `digest` is of its canonical JSON, in hex."""

    digest: str
    model: str
    input_tokens: int
    schema: Mapping[str, Any] | None = None
    tool: str = ""
    body: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def text(self, script: Script) -> str:
        """The answer: a sentence with the hash, or JSON of the schema that was asked for."""
        if self.schema is not None:
            return to_json(self.value(script)).decode()
        return f"Rehearsed answer {self.digest[:12]}" + self._extra(script)

    def value(self, script: Script) -> Any:
        """An instance of the schema that was asked for."""
        return instance(self.schema or {}, f"rehearsed {self.digest[:12]}{self._extra(script)}")

    def _extra(self, script: Script) -> str:
        return _SEPARATORS if script.unicode_separators else ""


def asked_of(
    body: Mapping[str, Any],
    model: str,
    schema: Mapping[str, Any] | None = None,
    tool: str = "",
    *,
    provider: str = "",
) -> Asked:
    """What a body asks. `schema` and `tool` are where its provider says them."""
    return Asked(digest_of(body), model, tokens_in(body, provider, model), schema, tool, body)


def digest_of(body: Mapping[str, Any]) -> str:
    """The SHA-256, in hex, of a body's JSON with sorted keys, without `model` and `stream`."""
    rest = {key: value for key, value in body.items() if key not in ("model", "stream")}
    return hashlib.sha256(_ENCODE(rest).encode("utf-8", "surrogatepass")).hexdigest()


def encoded(value: Any) -> bytes:
    """As JSON, with characters outside ASCII as they are."""
    return to_json(value)


def tokens_in(body: Any, provider: str = "", model: str = "") -> int:
    """A quarter of the characters, and for each picture what the provider's page says."""
    characters = images = 0
    left: list[Any] = [body]
    while left:
        value = left.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, dict):
            if value.get("type") in _IMAGES or not _IMAGES.isdisjoint(value):
                images += tokens_of_block(provider, model, value)
            else:
                left.extend(each for key, each in value.items() if key not in _SILENT)
    return characters // 4 + 1 + images


def tokens_of(text: str) -> int:
    """The tokens of an answer."""
    return len(text) // 4 + 1


def vector(text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on the text alone."""
    draw = random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())  # noqa: S311
    values = [draw.gauss(0, 1) for _ in range(dimensions)]
    length = sum(value * value for value in values) ** 0.5 or 1.0
    return [round(value / length, 7) for value in values]


def instance(schema: Mapping[str, Any], word: str) -> Any:
    """A small instance of a JSON schema, `word` wherever a free text is asked for."""
    return _instance(schema, word, schema, 0)


def _instance(schema: Any, word: str, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > 16:
        return word
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "$ref" in schema:
        return _instance(_at(root, schema["$ref"]), word, root, depth + 1)
    for choice in ("anyOf", "oneOf"):
        if schema.get(choice):
            return _instance(schema[choice][0], word, root, depth + 1)
    if schema.get("allOf"):
        merged = dict(schema)
        for part in merged.pop("allOf"):
            merged.update(part)
        return _instance(merged, word, root, depth + 1)
    return _of_type(schema, word, root, depth)


def _of_type(schema: Mapping[str, Any], word: str, root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        properties = schema.get("properties") or {}
        if depth > DEEP:
            required = schema.get("required") or []
            properties = {key: each for key, each in properties.items() if key in required}
        return {key: _instance(each, word, root, depth + 1) for key, each in properties.items()}
    if kind == "array":
        count = max(int(schema.get("minItems", 0)), 0 if depth > DEEP else 1)
        count = min(count, int(schema.get("maxItems", count)))
        return [_instance(schema.get("items"), word, root, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum"))
        value = 0 if least is None else least + (1 if "exclusiveMinimum" in schema else 0)
        most = schema.get("maximum")
        return value if most is None else min(value, most)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = {"date": "1891-05-03", "date-time": "1891-05-03T12:00:00Z"}.get(
        str(schema.get("format")), word
    )
    text = text.ljust(int(schema.get("minLength", 0)), ".")
    return text[: int(schema["maxLength"])] if "maxLength" in schema else text


def _at(root: Mapping[str, Any], pointer: str) -> Any:
    found: Any = root
    for part in pointer.lstrip("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
