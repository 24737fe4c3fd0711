"""Pages drawn for the tests of the steps, and the steps run on them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.registry import load_operation
from recipes_orchestration.steps.step import Context

LETTER = (
    "Bath, 14 March 1891",
    "Dear Mrs. Eleanor Whitcombe,",
    "the parcel of books has come safely.",
    "Mr. Arthur Pemberton will call on Thursday",
    "with the papers about the house in Exeter.",
    "Yours faithfully, George Wetherby",
)


def drawn(
    lines: Sequence[str],
    *,
    size: tuple[int, int] = (900, 620),
    place: tuple[int, int] = (60, 60),
    image: Image.Image | None = None,
) -> Image.Image:
    """A page with the lines in print of 28 pixels, one each 60 pixels."""
    page = image or Image.new("L", size, 240)
    for number, line in enumerate(lines):
        top = place[1] + 60 * number
        ImageDraw.Draw(page).text((place[0], top), line, 25, font=ImageFont.load_default(28))
    return page


def page_of(data: bytes | Image.Image, *, file: str = "p1.png", frame: int | None = None) -> Page:
    """A page of a file's bytes, or of a picture saved as PNG."""
    if isinstance(data, Image.Image):
        held = io.BytesIO()
        data.save(held, "PNG")
        data = held.getvalue()
    return Page(file, hashlib.sha256(data).hexdigest(), file, frame, lambda: data)


@cache
def _model(name: str, params: tuple[tuple[str, Any], ...]) -> Any:
    setup = load_operation(name).setup
    return setup(dict(params)) if setup else None


def run(
    name: str,
    page: Page,
    needs: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Any:
    """The value that the built-in step gives; models are loaded once a test run."""
    model = _model(name, tuple(sorted((params or {}).items())))
    return load_operation(name)(page, Context(name, params or {}, needs or {}, model))


def read_page(page: Page) -> dict[str, Any]:
    """The value of `read` after `lines`."""
    return run("read", page, {"lines": run("lines", page)})
