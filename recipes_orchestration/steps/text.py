"""`text`: the text that a PDF carries itself."""

from __future__ import annotations

from contextlib import closing

from pypdfium2 import PdfiumError

from ..errors import PageUnreadable
from ..pages.contents import Kind, kind_of
from ..pages.page import Page
from ..pages.pdf import open_pdf
from .params import NoParams, checker
from .step import Context, step

__all__ = ["text"]

# Characters of one page. Real pages have some thousands; a crafted one may claim hundreds of
# millions.
_LONGEST = 2_000_000


@step(kinds=("python", "pdf"), check=checker("text", NoParams), gives=("text",))
def text(page: Page, context: Context) -> dict[str, str]:  # noqa: ARG001
    """Gives the text inside a PDF's page, as its maker wrote it; `{"text": ""}` for other files.

    Nothing is recognized: a scanned PDF without a text layer has no text, so use `lines` and
    `read` for it. Lines end in `\\n`; hyphens at line ends are kept. Raises `PageUnreadable` when
    the PDF cannot be opened or lacks
    the page.
    """
    if kind_of(page.data) is not Kind.PDF:
        return {"text": ""}
    return {"text": _tidy(_pdf_text(page.data, page.frame or 0))}


def _pdf_text(data: bytes, frame: int) -> str:
    with open_pdf(data) as document:
        if frame >= len(document):
            raise PageUnreadable(
                f"The PDF has {len(document)} pages now; page {frame + 1} is no longer in it."
            )
        try:
            with closing(document[frame]) as opened, closing(opened.get_textpage()) as layer:
                length = min(layer.count_chars(), _LONGEST)
                return layer.get_text_range(0, length) if length > 0 else ""
        except PdfiumError as error:
            raise PageUnreadable(f"The PDF's page {frame + 1} is damaged: {error}") from error


def _tidy(raw: str) -> str:
    # PDFium ends lines with CR LF and marks soft hyphens at line ends with U+FFFE. A lone half
    # of a surrogate pair cannot be stored as UTF-8; NUL cannot be stored in PostgreSQL.
    lines = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-")
    whole = lines.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    return "\n".join(line.rstrip() for line in whole.split("\n")).strip("\n")
