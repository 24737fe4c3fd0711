"""Out of a model's answer: its text tidied, or its JSON checked against the step's schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..errors import StepError
from ..recipe import canonical_json
from .ask import Answer
from .shapes import Sure, surely

__all__ = ["LONGEST_ANSWER", "json_of", "schema_problem", "text_of"]

LONGEST_ANSWER = 2_000_000
"""Characters of an answer; more is no transcription of a page but a model going round."""

# The first line of an answer that stands in a code fence, as models like to wrap it.
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+-]{0,30}[ \t]*\r?")
_LONGEST_WORDS = 200
_LONGEST_NAME = 40


def text_of(answer: Answer) -> str:
    """The answer's text without surrounding blanks, and without a code fence around all of it.

    NUL and lone halves of surrogate pairs, which cannot be stored, are replaced. Raises
    `StepError` when it is longer than `LONGEST_ANSWER`.
    """
    text = _storable(_unfenced(_bounded(answer)))
    return "\n".join([line.rstrip() for line in text.split("\n")]).strip("\n")


def json_of(answer: Answer, schema: Mapping[str, Any]) -> Any:
    """The JSON value of an answer, a code fence around it allowed.

    Raises `StepError` when it is not JSON or does not follow the schema, naming the place and the
    rule but not what stands there: it may be private.
    """
    text = _storable(_unfenced(_bounded(answer)))
    try:
        value = json.loads(text, parse_constant=_not_json, parse_float=_finite)
        if "\\u" in text:  # what cannot be stored may be written as an escape
            value = _storable_value(value)
    except RecursionError:
        raise StepError("The answer is JSON nested too deep to be read.") from None
    except ValueError as error:
        words = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise StepError(f"The answer is not JSON: {_short(words, _LONGEST_WORDS)}.") from None
    try:
        sure, validator = _checks(canonical_json(schema))
        if sure is not None and sure(value):
            return value
        problem = next(validator.iter_errors(value), None)
    except RecursionError:
        raise StepError("The answer is JSON nested too deep to be checked.") from None
    if problem is not None:
        raise StepError(
            f"The answer does not follow the schema: {_where(problem)} {_rule(problem)}."
        )
    return value


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why this is no JSON schema that answers can be checked against, or None when it is one."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        for ref in _references(schema):
            if not ref.startswith("#"):
                return f"$ref {_short(ref, 60)} leads outside; write what it means into the schema"
            if not _leads_somewhere(schema, ref):
                return f"$ref {_short(ref, 60)} leads nowhere in the schema"
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
        # A circle of references shows only when they are followed.
        for _ in _checks(canonical_json(schema))[1].iter_errors({}):
            pass
    except SchemaError as error:
        return f"{_where(error)} is not right: {_short(error.message, _LONGEST_WORDS)}"
    except Exception as error:  # noqa: BLE001 - unknown drafts, patterns that are none, circles
        words = _short(str(error) or type(error).__name__, _LONGEST_WORDS)
        return f"it cannot be used: {words}"
    return None


@lru_cache(maxsize=64)
def _checks(schema: str) -> tuple[Sure | None, Any]:
    """The quick test of a schema, where it has one, and the full one."""
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    read = json.loads(schema)
    # An empty registry: the default one would fetch references from the network.
    full = validator_for(read, default=Draft202012Validator)(read, registry=Registry())
    return surely(read), full


def _references(schema: Any) -> list[str]:
    if isinstance(schema, Mapping):
        found = [
            value
            for key, value in schema.items()
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str)
        ]
        return found + [ref for value in schema.values() for ref in _references(value)]
    if isinstance(schema, list):
        return [ref for value in schema for ref in _references(value)]
    return []


def _leads_somewhere(schema: Mapping[str, Any], ref: str) -> bool:
    if not ref.startswith("#/"):
        return True  # the whole, or an anchor
    here: Any = schema
    for part in ref[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = here[name]
        elif isinstance(here, list) and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        else:
            return False
    return True


def _bounded(answer: Answer) -> str:
    if len(answer.text) > LONGEST_ANSWER:
        raise StepError(
            f"The answer has {len(answer.text):,} characters; {LONGEST_ANSWER:,} are allowed."
        )
    return answer.text


def _unfenced(text: str) -> str:
    """What stands in one code fence around all of the text; fences within a text stay."""
    whole = text.strip()
    if not whole.startswith(("`", "~")):
        return text
    opening, _, rest = whole.partition("\n")
    fence = _FENCE.fullmatch(opening)
    if fence is None:
        return text
    inside, _, closing = rest.rpartition("\n")
    # Two fenced blocks with words between them begin and end like one.
    if closing.strip() != fence[1] or f"\n{fence[1]}" in f"\n{inside}":
        return text
    return inside


def _storable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def _storable_value(value: Any) -> Any:
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, list):
        return [_storable_value(each) for each in value]
    if isinstance(value, dict):
        return {_storable(name): _storable_value(each) for name, each in value.items()}
    return value


def _not_json(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _where(problem: Any) -> str:
    # Names of properties may come from the answer, so they are short.
    path = [_short(str(part), _LONGEST_NAME) for part in problem.absolute_path]
    return f"'{_short('.'.join(path), 120)}'" if path else "the whole"


def _rule(problem: Any) -> str:
    wanted: Any = problem.validator_value
    match problem.validator:
        case "type":
            return f"must be of type {_short(json.dumps(wanted), 80)}"
        case "required":
            missing = [name for name in wanted if name not in problem.instance]
            return f"lacks {_short(', '.join(map(str, missing)), 80)}"
        case "additionalProperties" | "unevaluatedProperties":
            return "has properties that the schema does not allow"
        case rule:
            return f"breaks the rule {rule}: {_short(json.dumps(wanted, ensure_ascii=False), 80)}"


def _short(text: str, longest: int) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."
