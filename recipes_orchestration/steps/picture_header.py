"""What the header of a JPEG, PNG or WebP says of its picture, without decoding a pixel. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import PageUnreadable
from ..pages.contents import Kind, kind_of
from ..pages.whole import check_jpeg, check_png

__all__ = ["Format", "Header", "plain_header"]

Format = Literal["jpeg", "png", "webp"]

_SCAN = 0xDA
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
# Start of frame markers, without DHT (C4), JPG (C8) and DAC (CC); those of lossless and
# arithmetic coding are left out, as few decoders read them.
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_ORIENTATION = 0x0112
_UPRIGHT = 1
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


@dataclass(frozen=True, slots=True)
class Header:
    """A whole, upright, opaque 8-bit picture of one frame."""

    format: Format
    width: int
    height: int
    grey: bool


def plain_header(data: bytes) -> Header | None:
    """The header when the bytes can be shown as they are; None when they must be decoded.

    None for other formats, for pictures that are turned, cut off, transparent, animated, of more
    than 8 bits or of CMYK, and for whatever is not sure.
    """
    try:
        match kind_of(data):
            case Kind.JPEG:
                return _jpeg(data)
            case Kind.PNG:
                return _png(data)
            case Kind.WEBP:
                return _webp(data)
            case _:
                return None
    except (PageUnreadable, IndexError):
        return None


def _jpeg(data: bytes) -> Header | None:
    found: Header | None = None
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in _STANDALONE:
            at += 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4])
        if length < 2 or at + 2 + length > len(data):
            return None
        if marker == _SCAN:
            if found is not None:
                check_jpeg(data)
            return found
        body = data[at + 4 : at + 2 + length]
        if marker in _FRAMES:
            found = _jpeg_frame(body)
            if found is None:
                return None
        elif not _harmless(marker, body):
            return None
        at += 2 + length
    return None


def _jpeg_frame(body: bytes) -> Header | None:
    bits, height, width = body[0], int.from_bytes(body[1:3]), int.from_bytes(body[3:5])
    components = body[5]
    # A height of 0 stands in a later segment (DNL), which decoders rarely read.
    if bits != 8 or not width or not height or components not in (1, 3):
        return None
    return Header("jpeg", width, height, grey=components == 1)


def _harmless(marker: int, body: bytes) -> bool:
    """Whether a segment does not turn the picture, and does not say that there are more."""
    if marker == 0xE1 and body.startswith(b"Exif\0\0"):
        return _exif_upright(body[6:])
    if marker == 0xE1 and body.startswith(_XMP):
        return b"Orientation" not in body
    if marker == 0xE2 and body.startswith(b"MPF\0"):
        return False
    # Adobe's transform 0 with three components is RGB, which decoders do not all know.
    return not (marker == 0xEE and body.startswith(b"Adobe") and len(body) > 11 and not body[11])


def _exif_upright(tiff: bytes) -> bool:
    """Whether the notes say upright, or nothing; notes that cannot be read do not say so."""
    if tiff[:2] not in (b"II", b"MM"):
        return False
    order: Literal["little", "big"] = "little" if tiff[:2] == b"II" else "big"
    start = int.from_bytes(tiff[4:8], order)
    if start + 2 > len(tiff):
        return False
    count = int.from_bytes(tiff[start : start + 2], order)
    if start + 2 + 12 * count > len(tiff):
        return False
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        if int.from_bytes(tiff[entry : entry + 2], order) == _ORIENTATION:
            return int.from_bytes(tiff[entry + 8 : entry + 10], order) == _UPRIGHT
    return True


def _png(data: bytes) -> Header | None:
    if data[12:16] != b"IHDR":
        return None
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    bits, colour = data[24], data[25]
    # Grey, RGB or palette; those with alpha are put on white paper first.
    if bits > 8 or colour not in (0, 2, 3) or not width or not height:
        return None
    at = 8
    while at + 12 <= len(data):
        kind = data[at + 4 : at + 8]
        if kind in (b"acTL", b"eXIf", b"tRNS"):
            return None
        if kind in (b"iTXt", b"tEXt", b"zTXt"):
            text = data[at + 8 : at + 8 + int.from_bytes(data[at : at + 4])]
            if b"Orientation" in text or b"exif" in text[:80].lower() or b"XML" in text[:80]:
                return None
        at += 12 + int.from_bytes(data[at : at + 4])
    check_png(data)
    return Header("png", width, height, grey=colour == 0)


def _webp(data: bytes) -> Header | None:
    # A simple file has one chunk; the extended kind (VP8X) may turn, move or be transparent.
    if 8 + int.from_bytes(data[4:8], "little") > len(data):
        return None
    chunk, length = data[12:16], int.from_bytes(data[16:20], "little")
    if 20 + length > len(data):
        return None
    if chunk == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width = int.from_bytes(data[26:28], "little") & 0x3FFF
        height = int.from_bytes(data[28:30], "little") & 0x3FFF
        return Header("webp", width, height, grey=False) if width and height else None
    if chunk == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        if bits >> 28 & 1:
            return None  # has alpha
        return Header("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, grey=False)
    return None
