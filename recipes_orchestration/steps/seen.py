"""The picture of a page as a step wants to see it: the same bytes wherever the step runs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..pages.page import Page
from .picture import PictureSettings, picture_of

__all__ = ["png_of", "seen_bytes", "seen_page"]

# Zlib's fastest level: half of the time of the usual one for a tenth more bytes.
_PNG_LEVEL = 1


def seen_page(page: Page, image: Mapping[str, Any] | None) -> Page:
    """The page with its picture within the settings that a recipe's step has under `image`.

    It is made when it is first asked for, and raises then what `picture_of` raises.
    """
    if image is None:
        return page
    return replace(page, frame=None, fetch=partial(seen_bytes, page, image))


def seen_bytes(page: Page, image: Mapping[str, Any]) -> bytes:
    """The picture as a file: the page's own bytes where they are within the settings already."""
    return picture_of(page, PictureSettings.model_validate(dict(image)), most_bytes=None).data


def png_of(page: Page) -> bytes:
    """The page's picture as a PNG with the same pixels. Raises `PageUnreadable`."""
    stream = io.BytesIO()
    page.image.save(stream, "PNG", compress_level=_PNG_LEVEL)
    return stream.getvalue()
