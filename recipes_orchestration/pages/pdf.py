"""Pages of PDF files, by PDFium.

PDFium may be used by one thread at a time in a process, so everything here, and everything else
that opens a PDF, happens inside `open_pdf`.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock

import pypdfium2
import pypdfium2.raw as raw
from PIL import Image

from ..errors import PageUnreadable

__all__ = ["DPI", "MAX_PAGES", "MAX_RENDERED_PIXELS", "count_pages", "open_pdf", "render"]

DPI = 300
"""The resolution of a rendered page, unless it would have too many pixels."""

MAX_RENDERED_PIXELS = 40_000_000
"""A page is rendered at a lower resolution rather than with more pixels: A2 at 300 dpi is 35."""

MAX_PAGES = 20_000
"""A PDF that claims more pages than this is refused."""

_NO_PAGES = "The PDF has 0 pages; export it anew."
_POINTS_PER_INCH = 72
_MAX_SIDE = 60_000
_ONE_AT_A_TIME = RLock()


@contextmanager
def open_pdf(data: bytes) -> Generator[pypdfium2.PdfDocument]:
    """The document, with PDFium to itself until the block ends; close what is taken from it.

    Raises `PageUnreadable` for a PDF that needs a password, is damaged or has no pages.
    """
    with _ONE_AT_A_TIME:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise PageUnreadable(_why(data)) from error
        try:
            if not len(document):
                raise PageUnreadable(_NO_PAGES)
            if len(document) > MAX_PAGES:
                raise PageUnreadable(
                    f"The PDF has {len(document):,} pages, more than the {MAX_PAGES:,} that are "
                    "read at most; cut it into smaller files."
                )
            yield document
        finally:
            document.close()


def count_pages(data: bytes) -> int:
    """How many pages the PDF has, at least 1; raises `PageUnreadable` as `open_pdf` does."""
    with open_pdf(data) as document:
        return len(document)


def render(data: bytes, frame: int, max_pixels: int = MAX_RENDERED_PIXELS) -> Image.Image:
    """One page (counted from 0) as an upright RGB picture, with its forms and annotations.

    At 300 dpi, or less where the page would have more than `max_pixels`. The page's own turn
    (`/Rotate`) is honoured. Raises `PageUnreadable`.
    """
    with open_pdf(data) as document:
        if frame >= len(document):
            raise PageUnreadable(
                f"The PDF has {len(document)} pages now; page {frame + 1} is no longer in it."
            )
        try:
            # Before any page is opened, or the fields of that page are not drawn.
            document.init_forms()
            page = document[frame]
            try:
                scale = _scale(*page.get_size(), min(max_pixels, MAX_RENDERED_PIXELS))
                bitmap = page.render(scale=scale)  # pyright: ignore[reportArgumentType] - takes floats
                try:
                    return bitmap.to_pil().convert("RGB").copy()
                finally:
                    bitmap.close()
            finally:
                page.close()
        except pypdfium2.PdfiumError as error:
            raise PageUnreadable(f"The PDF's page {frame + 1} is damaged: {error}") from error


def _scale(width: float, height: float, max_pixels: int) -> float:
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise PageUnreadable("The PDF's page has no size.")
    scale = DPI / _POINTS_PER_INCH
    pixels = width * scale * height * scale
    if pixels > max_pixels:
        scale *= math.sqrt(max_pixels / pixels)
    return min(scale, _MAX_SIDE / max(width, height))


def _why(data: bytes) -> str:
    # Asked anew of PDFium itself: what it last complained of stays on when a document opens, so
    # one without pages would be said to have the fault of another.
    document = raw.FPDF_LoadMemDocument64(data, len(data), None)
    if document:
        raw.FPDF_CloseDocument(document)
        return _NO_PAGES
    match raw.FPDF_GetLastError():
        case raw.FPDF_ERR_PASSWORD:
            return "The PDF needs a password; put a copy without one in its place."
        case raw.FPDF_ERR_SECURITY:
            return "The PDF is encrypted in a way that is not supported; put a plain copy there."
        case _:
            return "The PDF is damaged, cut off or empty and cannot be opened; copy it anew."
