"""The directories of a TIFF, classic and BigTIFF: which pages it has and whether they are whole.

Read here and not by Pillow, so that counting 20,000 pages costs no decoding, a chain that leads
back into itself ends, and any page can be opened without walking to it. Facts: TIFF 6.0 and the
BigTIFF design at https://www.awaresystems.be/imaging/tiff/bigtiff.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import PageUnreadable

__all__ = ["MAX_PAGES", "Directory", "directories", "opened_at"]

MAX_PAGES = 20_000
"""A TIFF that claims more pages than this is refused."""

_MAX_ENTRIES = 1_000_000
_SUBFILE_TYPE = 254
_PHOTOMETRIC = 262
_OFFSETS = (273, 324)
_COUNTS = (279, 325)
_REDUCED, _MASK = 1, 4
# Bytes and struct letter of the field types that the tags read here may have.
_TYPES = {1: (1, "B"), 3: (2, "H"), 4: (4, "I"), 13: (4, "I"), 16: (8, "Q"), 18: (8, "Q")}


@dataclass(frozen=True)
class _Layout:
    order: str
    big: bool

    @property
    def count(self) -> struct.Struct:
        return struct.Struct(self.order + ("Q" if self.big else "H"))

    @property
    def entry(self) -> struct.Struct:
        return struct.Struct(self.order + ("HHQ8s" if self.big else "HHI4s"))

    @property
    def offset(self) -> struct.Struct:
        return struct.Struct(self.order + ("Q" if self.big else "I"))


@dataclass(frozen=True)
class Directory:
    """One image of a TIFF. `index` counts from 0 over all of them, `offset` is in bytes.

    `preview` says that it is a smaller copy or a mask of another image, not a page.
    """

    index: int
    offset: int
    preview: bool
    photometric: int
    _data: bytes
    _layout: _Layout
    _entries: dict[int, tuple[int, int, bytes]]

    def cut_off(self) -> bool:
        """Whether pixel data of this image would lie beyond the end of the file."""
        size = len(self._data)
        for offset_tag, count_tag in zip(_OFFSETS, _COUNTS, strict=True):
            counts = self._values(count_tag)
            for offset in self._values(offset_tag):
                count = next(counts, 0)
                # Old writers leave the count of a single strip open, as nothing or as all ones.
                known = count if count < 0xFFFFFFFF else 0
                if offset + known > size or offset >= size:
                    return True
        return False

    def _values(self, tag: int) -> Iterator[int]:
        if tag not in self._entries:
            return
        field, count, inline = self._entries[tag]
        if field not in _TYPES:
            return
        width, letter = _TYPES[field]
        length = width * count
        if length <= len(inline):
            raw = inline[:length]
        else:
            (at,) = self._layout.offset.unpack(inline)
            raw = self._data[at : at + length]
        whole = len(raw) // width * width
        for (value,) in struct.iter_unpack(self._layout.order + letter, raw[:whole]):
            yield value


def directories(data: bytes) -> list[Directory]:
    """The images of a TIFF in their order; a chain that leads back into itself ends there.

    Raises `PageUnreadable` when the chain leads out of the file or is longer than `MAX_PAGES`.
    """
    layout, first_at = _layout_of(data)
    found: list[Directory] = []
    seen: set[int] = set()
    entries_left = _MAX_ENTRIES
    try:
        (offset,) = layout.offset.unpack_from(data, first_at)
        while offset and offset not in seen:
            if len(found) >= MAX_PAGES or entries_left < 0:
                raise PageUnreadable(
                    f"The TIFF claims to have more than {MAX_PAGES:,} pages; it is damaged or "
                    "not made for reading. Cut it into smaller files."
                )
            seen.add(offset)
            (count,) = layout.count.unpack_from(data, offset)
            start = offset + layout.count.size
            end = start + count * layout.entry.size
            entries_left -= count
            (following,) = layout.offset.unpack_from(data, end)
            found.append(_directory(len(found), offset, data[start:end], data, layout))
            offset = following
    except struct.error:
        reached = f"after {len(found)} pages" if found else "before its first page"
        raise PageUnreadable(
            f"The TIFF is damaged or cut off {reached}: its directory lies beyond the end of the "
            "file. Copy the file anew."
        ) from None
    if not found:
        raise PageUnreadable("The TIFF has no page in it.")
    return found


def opened_at(data: bytes, directory: Directory) -> bytes:
    """The same TIFF with that image as its first, so that a reader need not walk to it."""
    layout, first_at = _layout_of(data)
    pointer = layout.offset.pack(directory.offset)
    if data[first_at : first_at + len(pointer)] == pointer:
        return data
    return b"".join((data[:first_at], pointer, data[first_at + len(pointer) :]))


def _layout_of(data: bytes) -> tuple[_Layout, int]:
    layout = _Layout("<" if data[:2] == b"II" else ">", b"+" in data[2:4])
    return layout, 8 if layout.big else 4


def _directory(index: int, offset: int, raw: bytes, data: bytes, layout: _Layout) -> Directory:
    wanted = {_SUBFILE_TYPE, _PHOTOMETRIC, *_OFFSETS, *_COUNTS}
    entries = {
        tag: (field, count, inline)
        for tag, field, count, inline in layout.entry.iter_unpack(raw)
        if tag in wanted
    }

    def small(tag: int) -> int:
        field, _, inline = entries.get(tag, (0, 0, b""))
        if field not in _TYPES:
            return -1
        return struct.unpack_from(layout.order + _TYPES[field][1], inline)[0]

    subfile = max(small(_SUBFILE_TYPE), 0)
    preview = bool(subfile & (_REDUCED | _MASK))
    return Directory(index, offset, preview, small(_PHOTOMETRIC), data, layout, entries)
