"""Reads JSON that came from outside: whatever it is, nothing here raises."""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson

__all__ = [
    "PICTURE",
    "as_dict",
    "as_list",
    "as_text",
    "count",
    "dump",
    "one_line",
    "parse",
    "quoted",
    "sound",
    "tidy",
]

WORDS_LIMIT = 600
PICTURE = f"picture-{uuid4().hex}"
"""What stands for a picture in a value that is dumped. No text from outside can hold it."""
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
# Keys of Anthropic and OpenAI begin so; OpenAI repeats a part of a wrong key in its error.
KEY = re.compile(r"\b(?:sk|pk|sess)-[A-Za-z0-9_*.\-]{3,}|(?<=Bearer )\S+")


def parse(data: bytes) -> Any:
    """The JSON value in UTF-8, None when it is broken, too deep or no UTF-8.

    The first reader is the faster one; it takes no half surrogate pairs, which answers may hold.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError):
        return None


def dump(value: Any, pictures: Sequence[bytes] = ()) -> bytes:
    """The value as one line of ASCII, so that no reader can split it at U+2028 or its like.

    Each `PICTURE` in its texts stands for the next of the pictures, in base64: as texts they would
    be looked through for characters to be escaped, which takes 20 times as long as writing them.
    """
    try:
        data = orjson.dumps(value)  # the faster one; it escapes nothing
    except TypeError:
        data = b"\xff"
    if not data.isascii():
        data = _ENCODE(value).encode()
    if not pictures:
        return data
    pieces = data.split(PICTURE.encode())
    joined = [pieces[0]]
    for picture, piece in zip(pictures, pieces[1:], strict=True):
        joined += [b2a_base64(picture, newline=False), piece]
    return b"".join(joined)


def quoted(id: str) -> bytes:
    """An id of a batch's line as JSON: letters, digits, `_` and `-`, of which none is escaped."""
    return f'"{id}"'.encode()


def one_line(body: bytes) -> bytes:
    """The same JSON without line breaks, which can only stand between its values."""
    if b"\n" in body or b"\r" in body:
        return body.replace(b"\r", b" ").replace(b"\n", b" ")
    return body


def as_dict(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return sound(value) if isinstance(value, str) else ""


def count(value: Any) -> int:
    """The value if it is a whole number from 0 on, else 0."""
    return value if type(value) is int and value >= 0 else 0


def sound(text: str) -> str:
    """The text with what no UTF-8 can hold (half a surrogate pair) replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def tidy(words: Any) -> str:
    """A provider's words for a person: one line, bounded, with nothing that looks like a key."""
    text = KEY.sub("[key]", " ".join(as_text(words).split()))
    text = "".join(char for char in text if char.isprintable())
    return text if len(text) <= WORDS_LIMIT else text[: WORDS_LIMIT - 1] + "…"
