"""A prompt file as a template: `{name}` and `{name.field}` stand for what is known of a page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from ..errors import StepError
from .step import Context

__all__ = ["LONGEST_PROMPT", "PAGE_ID", "TEXT", "Slot", "TemplateError", "parse_template", "render"]

PAGE_ID = "page_id"
TEXT = "text"

LONGEST_PROMPT = 2_000_000
"""Characters of a question with everything filled in; no model takes as many."""

# A step's name as the project takes it, and at most one field of its value: no expressions, no
# attributes and no format specifications, so that a template can do nothing but show values.
_SLOT = re.compile(r"\{([A-Za-z0-9_]{1,100})(?:\.([A-Za-z0-9_-]{1,100}))?\}")
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Slot:
    """A place to be filled: a needed step, `text` or `page_id`. `line` counts from 1."""

    name: str
    field: str | None
    line: int

    def __str__(self) -> str:
        return f"{{{self.name}}}" if self.field is None else f"{{{self.name}.{self.field}}}"


class TemplateError(StepError):
    """A template that cannot be read; `line` counts from 1."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


Template: TypeAlias = tuple[str | Slot, ...]


@lru_cache(maxsize=64)
def parse_template(text: str) -> Template:
    """Literal pieces and slots in order; `{{` and `}}` are braces of the text itself.

    Raises `TemplateError` for a brace that is neither.
    """
    parts: list[str | Slot] = []
    literal: list[str] = []
    at = 0
    while (brace := _BRACE.search(text, at)) is not None:
        start = brace.start()
        literal.append(text[at:start])
        if text.startswith(brace[0] * 2, start):
            literal.append(brace[0])
            at = start + 2
            continue
        slot = _SLOT.match(text, start)
        line = text.count("\n", 0, start) + 1
        if slot is None:
            raise TemplateError(line, _stray(text[start : start + 30]))
        if whole := "".join(literal):
            parts.append(whole)
        literal.clear()
        parts.append(Slot(slot[1], slot[2], line))
        at = slot.end()
    literal.append(text[at:])
    if whole := "".join(literal):
        parts.append(whole)
    return tuple(parts)


def render(template: Template, page_id: str, context: Context) -> str:
    """The template with a page's values filled in.

    A needed step's name gives the `text` of its value, or the value as JSON when it has none;
    `text` is that of the first needed step that has one. Raises `StepError` for what the needs do
    not have, and when the whole is longer than `LONGEST_PROMPT`.
    """
    pieces: list[str] = []
    length = 0
    for part in template:
        piece = part if isinstance(part, str) else _filled(part, page_id, context)
        length += len(piece)
        if length > LONGEST_PROMPT:
            raise StepError(
                f"The question of the step '{context.step}' on {page_id} has more than "
                f"{LONGEST_PROMPT:,} characters; needed values that are shorter can be asked about."
            )
        pieces.append(piece)
    return _utf8("".join(pieces))


def _filled(slot: Slot, page_id: str, context: Context) -> str:
    # A needed step wins over `text` and `page_id`, so that every step can be named.
    if slot.name in context.needs:
        value: Any = context.needs[slot.name]
        if slot.field is None:
            return _shown(value["text"] if _has_text(value) else value)
        if isinstance(value, Mapping) and slot.field in value:
            return _shown(value[slot.field])
        raise StepError(
            f"The prompt of the step '{context.step}' has {slot} in line {slot.line}, but the "
            f"value of '{slot.name}' on {page_id} has no such field."
        )
    if slot.field is None and slot.name == PAGE_ID:
        return page_id
    if slot.field is None and slot.name == TEXT:
        for value in context.needs.values():
            if _has_text(value):
                return value["text"]
    has = ", ".join(context.needs) or "nothing"
    raise StepError(
        f"The prompt of the step '{context.step}' has {slot} in line {slot.line}, but the step "
        f"needs {has}; name a needed step, or add it to needs."
    )


def _has_text(value: Any) -> bool:
    # The first question is the quicker one, and most values are plain objects.
    plain = type(value) is dict or isinstance(value, Mapping)
    return plain and isinstance(value.get("text"), str)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _utf8(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone half of a surrogate pair, which no JSON body can carry
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _stray(found: str) -> str:
    shown = found.partition("\n")[0]
    return (
        f'found "{shown}"; allowed: {{text}}, {{page_id}}, {{step}} or {{step.field}} of a needed '
        f"step, and {shown[:1] * 2} for a {shown[:1]} of the text itself"
    )
