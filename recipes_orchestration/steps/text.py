"""`text`: the text that a PDF carries itself."""

from __future__ import annotations

from ..errors import PageUnreadable
from ..pages.page import Page
from .params import NoParams, checker
from .step import Context, step

__all__ = ["text"]

# Characters of one page. Real pages have some thousands; a crafted one may claim hundreds of
# millions.
_LONGEST = 2_000_000

# PDF readers accept the header anywhere in the first kilobyte.
_HEADER_WITHIN = 1024


@step(kinds=("python", "pdf"), check=checker("text", NoParams), gives=("text",))
def text(page: Page, context: Context) -> dict[str, str]:  # noqa: ARG001
    """Gives the text inside a PDF's page, as its maker wrote it; `{"text": ""}` for other files.

    Nothing is recognized: a scanned PDF without a text layer has no text, so use `lines` and
    `read` for it. Lines end in `\\n`; hyphens at line ends are kept. Raises `PageUnreadable` when
    the PDF cannot be opened.
    """
    if b"%PDF-" not in page.data[:_HEADER_WITHIN]:
        return {"text": ""}
    return {"text": _tidy(_pdf_text(page.data, page.frame or 0))}


def _pdf_text(data: bytes, frame: int) -> str:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise PageUnreadable(f"The PDF cannot be opened: {error}") from error
    try:
        opened = document[frame]
        layer = opened.get_textpage()
        length = min(layer.count_chars(), _LONGEST)
        return layer.get_text_range(0, length) if length > 0 else ""
    except (pypdfium2.PdfiumError, IndexError) as error:
        raise PageUnreadable(f"Page {frame + 1} of the PDF cannot be read: {error}") from error
    finally:
        document.close()


def _tidy(raw: str) -> str:
    # PDFium ends lines with CR LF and marks soft hyphens at line ends with U+FFFE. A lone half
    # of a surrogate pair cannot be stored as UTF-8; NUL cannot be stored in PostgreSQL.
    lines = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-")
    whole = lines.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    return "\n".join(line.rstrip() for line in whole.split("\n")).strip("\n")
