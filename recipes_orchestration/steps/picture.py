"""A page's picture as it is sent to a model: the file's own bytes where they will do."""

from __future__ import annotations

import io

from PIL import Image
from pydantic import ConfigDict, Field

from ..errors import PageUnreadable
from ..pages.page import Page
from .ask import Picture
from .params import Params
from .picture_header import Format, plain_header

__all__ = ["DEFAULT_SIDE", "MOST_BYTES", "MOST_SIDE", "PictureSettings", "picture_of"]

DEFAULT_SIDE = 2000
"""Pixels. OpenAI's larger view ends at 2,000 (developers.openai.com/api/docs/guides/images), and
Claude takes larger pictures down by itself (platform.claude.com/docs/en/build-with-claude/vision,
both read November 2026)."""

MOST_SIDE = 8000
"""Pixels: Claude's and Bedrock's bound for one picture (pages as above and below)."""

MOST_BYTES = 3_750_000
"""Bedrock's bound for one picture, 3.75 MB (docs.aws.amazon.com/bedrock/latest/APIReference/
API_runtime_Message.html, read November 2026). In base64 that is Claude's 5 MB."""

_QUALITY = 85
_POOREST = 50
_LEAST_SIDE = 200  # below it Claude's page says that models see badly
_SMALLER = 0.75


class PictureSettings(Params):
    """How a page's picture is sent; a file that fits them already is sent as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_side: int = Field(
        default=DEFAULT_SIDE,
        ge=_LEAST_SIDE,
        le=MOST_SIDE,
        description="The longer side in pixels at most; smaller pictures are never made larger.",
    )
    format: Format | None = Field(
        default=None,
        description="jpeg, png or webp; by default a file of these kinds is left as it is and "
        "others become jpeg.",
    )
    quality: int = Field(
        default=_QUALITY, ge=1, le=100, description="Of a jpeg or webp that is made, 1 to 100."
    )
    grey: bool = Field(default=False, description="true: without colours.")


def picture_of(
    page: Page, settings: PictureSettings, most_bytes: int | None = MOST_BYTES
) -> Picture:
    """The page's picture, upright, within the settings and within what the providers take.

    The file's bytes themselves when they are an upright, opaque JPEG, PNG or WebP of one frame
    that fits: that takes no longer than reading its header. Otherwise the picture is decoded,
    made smaller where it must be and encoded. `most_bytes` is the file's bound, None where no
    provider has one. Raises `PageUnreadable` when the bytes are no picture, or when it cannot be
    made small enough.
    """
    if not page.frame and (most_bytes is None or len(page.data) <= most_bytes):
        header = plain_header(page.data)
        if (
            header is not None
            and max(header.width, header.height) <= settings.max_side
            and header.width * header.height <= page.max_pixels
            and settings.format in (None, header.format)
            and (header.grey or not settings.grey)
        ):
            return Picture(page.data, f"image/{header.format}")
    return page.pictured(_encoded, settings, most_bytes)


def _encoded(image: Image.Image, settings: PictureSettings, most_bytes: int | None) -> Picture:
    if settings.grey:
        image = image.convert("L")
    kind: Format = settings.format or "jpeg"
    quality = settings.quality
    side = min(settings.max_side, max(image.size))
    while True:
        data = _encode(_within(image, side), kind, quality)
        if most_bytes is None or len(data) <= most_bytes:
            return Picture(data, f"image/{kind}")
        if kind != "png" and quality > _POOREST:
            quality = max(_POOREST, quality - 15)
        elif side * _SMALLER >= _LEAST_SIDE:
            side = int(side * _SMALLER)
        else:
            raise PageUnreadable(
                f"The picture has {len(data):,} bytes as {kind} even at {side} pixels, more than "
                f"the {most_bytes:,} that models take; put a simpler copy in its place."
            )


def _within(image: Image.Image, side: int) -> Image.Image:
    longer = max(image.size)
    if longer <= side:
        return image
    width, height = (max(1, round(length * side / longer)) for length in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)


def _encode(image: Image.Image, kind: Format, quality: int) -> bytes:
    stream = io.BytesIO()
    if kind == "png":
        image.save(stream, "PNG")
    else:
        image.save(stream, kind.upper(), quality=quality)
    return stream.getvalue()
