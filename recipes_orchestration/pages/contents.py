"""What a file is, told by its first bytes. Extensions of archives lie; contents do not. Pure."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EMPTY", "Kind", "kind_of", "what_else"]

EMPTY = "The file is empty (0 bytes); perhaps a copy is still under way."

_JP2 = (b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_HEIC_BRANDS = frozenset(
    {b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"hevm", b"hevs", b"mif1", b"msf1"}
)
# A PDF may have anything in front of its header as long as that is within this (Annex H.3).
_PDF_HEADER_WITHIN = 1024
_TEXT_SAMPLE = 512


class Kind(StrEnum):
    """The kinds of file that can be pages."""

    JPEG = "JPEG"
    PNG = "PNG"
    TIFF = "TIFF"
    WEBP = "WebP"
    JPEG2000 = "JPEG 2000"
    GIF = "GIF"
    BMP = "BMP"
    AVIF = "AVIF"
    HEIC = "HEIC"
    PDF = "PDF"


def kind_of(data: bytes) -> Kind | None:
    """What the bytes say they are; None when they are no page."""
    head = data[:16]
    for start, kind in (
        (b"\xff\xd8", Kind.JPEG),
        (b"\x89PNG\r\n\x1a\n", Kind.PNG),
        (_TIFF, Kind.TIFF),
        (_JP2, Kind.JPEG2000),
        ((b"GIF87a", b"GIF89a"), Kind.GIF),
        (b"BM", Kind.BMP),
    ):
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Kind.WEBP
    if head[4:8] == b"ftyp":
        return _iso_kind(data)
    if b"%PDF-" in data[:_PDF_HEADER_WITHIN]:
        return Kind.PDF
    return None


def _iso_kind(data: bytes) -> Kind | None:
    size = min(int.from_bytes(data[:4]), 256)
    brands = [data[8:12], *(data[at : at + 4] for at in range(16, size, 4))]
    if b"avif" in brands or b"avis" in brands:
        return Kind.AVIF
    return Kind.HEIC if _HEIC_BRANDS.intersection(brands) else None


def what_else(data: bytes) -> str:
    """Why bytes of no known kind are no page, as one sentence."""
    sample = data[:_TEXT_SAMPLE]
    lowered = sample.lstrip().lower()
    if not data:
        return EMPTY
    if not any(sample):
        return "The file begins with nothing but zero bytes; perhaps a copy failed midway."
    if lowered.startswith((b"<!doctype html", b"<html")):
        return "The file is a web page (HTML), no picture; perhaps its download was refused."
    if sample.startswith(b"PK"):
        return "The file is a ZIP archive, no picture; unpack it beside the pages."
    if _is_text(sample):
        return "The file is text, no picture."
    return (
        "The file is no kind of picture or PDF that is known here; "
        f"it begins with the bytes {sample[:8].hex(' ')}."
    )


def _is_text(sample: bytes) -> bool:
    text = sample.decode("utf-8", "replace")
    return all(char.isprintable() or char in "\t\r\n" for char in text.rstrip("\ufffd"))
