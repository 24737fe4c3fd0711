"""Whether a picture's bytes are all there. Decoders fill what is missing with grey in silence."""

from __future__ import annotations

import zlib

from ..errors import PageUnreadable

__all__ = ["check_jpeg", "check_png"]

_PNG_SIGNATURE = 8
_START_OF_SCAN = 0xDA
_END_OF_IMAGE = b"\xff\xd9"
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})


def check_png(data: bytes) -> None:
    """Raises `PageUnreadable` when a needed chunk is missing or its checksum is wrong."""
    at = _PNG_SIGNATURE
    view = memoryview(data)
    while at + 12 <= len(data):
        length = int.from_bytes(view[at : at + 4])
        kind = bytes(view[at + 4 : at + 8])
        end = at + 8 + length
        if end + 4 > len(data):
            break
        # Chunks whose name starts with a small letter are not needed for the picture.
        needed = not kind[0] & 0x20
        if needed and zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4]):
            raise PageUnreadable(
                "The PNG is damaged: a checksum does not fit its data. Copy or scan it anew."
            )
        if kind == b"IEND":
            return
        at = end + 4
    raise PageUnreadable("The PNG is cut off: its end is missing. Copy or scan it anew.")


def check_jpeg(data: bytes) -> None:
    """Raises `PageUnreadable` when no end follows the start of the picture's data."""
    start = _start_of_scan(data)
    if start is None or data.rfind(_END_OF_IMAGE, start) < 0:
        raise PageUnreadable("The JPEG is cut off: its end is missing. Copy or scan it anew.")


def _start_of_scan(data: bytes) -> int | None:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if marker == _START_OF_SCAN:
            return at
        if marker == 0xFF:
            at += 1
        elif marker in _STANDALONE or marker == 0:
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None
