"""Names of pages, folders and batches: one reversible spelling for each use. Pure.

A page's name is valid Unicode even where its file's is not: each byte that is no UTF-8 stands as
the private-use character U+F700 + byte, and a character that truly is in U+F780..U+F7FF stands as
its own UTF-8 bytes, each written that way, so that two files never share a name.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = [
    "ROOT",
    "batch_key",
    "decode_folder",
    "encode_folder",
    "folder_of",
    "folder_order",
    "name_from_bytes",
    "name_from_text",
    "name_to_bytes",
    "natural_key",
    "page_id_of",
    "shown",
    "split_batch_key",
]

ROOT = "."
"""The name of the source's own folder."""

NaturalKey = tuple[str, str]

_ESCAPE = 0xF700
_PLAIN = re.compile(r"[-a-zA-Z0-9_/]*\Z")
_OUTSIDE = re.compile(rb"[^-a-zA-Z0-9_/]")
_ENCODED = re.compile(r"(?:[-a-zA-Z0-9_/]|:[0-9A-F]{2})+\Z")
_COLON = re.compile(rb":([0-9A-F]{2})")
_PRIVATE = re.compile("[\uf780-\uf7ff]")
_UNDECODABLE = re.compile("[\udc80-\udcff\uf780-\uf7ff]")
_DIGITS = re.compile(r"0*([0-9]+)")
_NUMBER = re.compile(r"[0-9]{4,}\Z")
_MAX_DIGITS = 18


def name_from_bytes(raw: bytes) -> str:
    """A file's name or path as valid Unicode; `name_to_bytes` gives the bytes back."""
    text = raw.decode("utf-8", "surrogateescape")
    return text if text.isascii() else _UNDECODABLE.sub(_escape, text)


def name_from_text(text: str) -> str:
    """The same for a store whose names are text; lone surrogates are escaped too."""
    return text if text.isascii() else name_from_bytes(text.encode("utf-8", "surrogatepass"))


def name_to_bytes(name: str) -> bytes:
    """The bytes under which the file is opened."""
    if name.isascii():
        return name.encode()
    parts = (
        bytes([ord(char) - _ESCAPE]) if _PRIVATE.match(char) else char.encode() for char in name
    )
    return b"".join(parts)


def _escape(match: re.Match[str]) -> str:
    raw = match[0].encode("utf-8", "surrogateescape")
    return "".join(chr(_ESCAPE + byte) for byte in raw)


def folder_of(file: str) -> str:
    """The folder that holds a file; `.` for the source's own."""
    return file.rpartition("/")[0] or ROOT


def page_id_of(file: str, frame: int | None) -> str:
    """`file`, or `file#0003` for frame 2 of a file of several pages."""
    return file if frame is None else f"{file}#{frame + 1:04d}"


def encode_folder(folder: str) -> str:
    """The folder in the characters a partition key may have: `[-a-zA-Z0-9_:/]`.

    Every UTF-8 byte outside `[-a-zA-Z0-9_/]` becomes `:XX`, so `letters-1891` stays as it is and
    `.` becomes `:2E`. Raises `ValueError` for an empty name.
    """
    if not folder:
        raise ValueError("A folder has a name; the source's own is '.'.")
    if _PLAIN.match(folder):
        return folder
    return _OUTSIDE.sub(lambda match: b":%02X" % match[0][0], folder.encode()).decode()


def decode_folder(encoded: str) -> str:
    """The folder that `encode_folder` was given. Raises `ValueError` for anything else."""
    if _ENCODED.match(encoded):
        raw = _COLON.sub(lambda match: bytes([int(match[1], 16)]), encoded.encode())
        try:
            folder = raw.decode()
        except UnicodeDecodeError:
            folder = ""
        if folder and encode_folder(folder) == encoded:
            return folder
    raise ValueError(f"{shown(encoded)!r} is not an encoded folder.")


def batch_key(folder: str, number: int) -> str:
    """The partition key of a folder's batch: `letters-1891/0001`. Numbers count from 1."""
    if number < 1:
        raise ValueError(f"Batches count from 1, not {number}.")
    return f"{encode_folder(folder)}/{number:04d}"


def split_batch_key(key: str) -> tuple[str, int]:
    """Folder and number of a batch key. Raises `ValueError` for anything else."""
    encoded, slash, digits = key.rpartition("/")
    if slash and _NUMBER.match(digits) and len(digits) <= _MAX_DIGITS:
        number = int(digits)
        if number and f"{number:04d}" == digits:
            return decode_folder(encoded), number
    raise ValueError(f"{shown(key)!r} is not a batch key; one looks like 'letters-1891/0001'.")


def natural_key(name: str) -> NaturalKey:
    """Sorts names as people number them: `p2` before `p10`, upper and lower case together.

    Names that differ at all have different keys, so the order is the same on every machine.
    """
    return _DIGITS.sub(_sortable, name.casefold()), name


def _sortable(match: re.Match[str]) -> str:
    # The longer number is the larger one; the 0 in front keeps digits where they sort in text.
    digits = match[1]
    return f"0{chr(min(len(digits), 0xD000))}{digits}"


def folder_order(folder: str) -> tuple[NaturalKey, ...]:
    """Sorts folders as a walk meets them: each before its subfolders, siblings naturally."""
    return () if folder == ROOT else tuple(natural_key(part) for part in folder.split("/"))


def shown(name: str) -> str:
    """A name for a terminal, a log or a message: nothing in it can move, hide or colour text.

    Control, invisible and direction-changing characters are written as escapes, and a byte that
    is no UTF-8 as `\\xe9`. For reading only: the name itself goes into files and tables.
    """
    return name if name.isascii() and name.isprintable() else "".join(map(_shown, name))


def _shown(char: str) -> str:
    code = ord(char)
    if 0xF780 <= code <= 0xF7FF:
        return f"\\x{code - _ESCAPE:02x}"
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        return char.encode("unicode_escape").decode()
    return char
