"""Bytes of a page file to one upright picture. No global state is touched; threads may share it."""

from __future__ import annotations

import io
from collections.abc import Callable

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from ..errors import PageUnreadable, RecipesError
from . import pdf, tiff
from .contents import Kind, kind_of, what_else
from .pixels import to_grey_or_rgb, turned
from .whole import check_jpeg, check_png

__all__ = ["MAX_PIXELS", "decode"]

MAX_PIXELS = 150_000_000
"""A picture may have this many pixels unless another bound is given: A0 at 300 dpi has 139."""

_ORIENTATION = 274
_MIN_IS_WHITE = 0


class _Tiff(TiffImagePlugin.TiffImageFile):
    def load_prepare(self) -> None:
        # Pillow's own bound is one for the whole process; the pixels have been counted by now.
        if self._im is None:
            self.im = Image.core.new(self.mode, self._tile_size)
        super().load_prepare()


# The plugins are called by themselves: `Image.open` would go by its process-wide pixel bound and
# hand the file to any of forty formats, some of which start other programs.
_OPENERS: dict[Kind, Callable[[io.BytesIO], ImageFile.ImageFile]] = {
    Kind.JPEG: JpegImagePlugin.JpegImageFile,
    Kind.PNG: PngImagePlugin.PngImageFile,
    Kind.TIFF: _Tiff,
    Kind.WEBP: WebPImagePlugin.WebPImageFile,
    Kind.JPEG2000: Jpeg2KImagePlugin.Jpeg2KImageFile,
    Kind.GIF: GifImagePlugin.GifImageFile,
    Kind.BMP: BmpImagePlugin.BmpImageFile,
    Kind.AVIF: AvifImagePlugin.AvifImageFile,
}


def decode(data: bytes, *, frame: int = 0, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The page as an upright picture of mode RGB or L; `frame` counts from 0 within the file.

    Pages of a PDF are rendered at 300 dpi, or less where that would be more than 40 million
    pixels. Of a GIF, WebP or MPO the first frame is taken. Raises `PageUnreadable`, with a reason
    for a person, for bytes that are not a whole picture or one of more than `max_pixels`.
    """
    kind = kind_of(data)
    if kind is None:
        raise PageUnreadable(what_else(data))
    if kind is Kind.PDF:
        return pdf.render(data, frame, max_pixels)
    try:
        if kind is Kind.TIFF:
            return _tiff(data, frame, max_pixels)
        if frame:
            raise PageUnreadable(f"The file has one page now; page {frame + 1} is no longer in it.")
        if kind is Kind.HEIC:
            return _heic(data, max_pixels)
        if kind is Kind.PNG:
            check_png(data)
        elif kind is Kind.JPEG:
            check_jpeg(data)
        return _picture(_OPENERS[kind](io.BytesIO(data)), max_pixels)
    except (RecipesError, MemoryError):
        raise
    except Exception as error:  # plugins raise nearly anything for bytes that are not as hoped
        raise PageUnreadable(
            f"The {kind} is damaged, cut off or of a kind that is not supported "
            f"({_words(error)}). Copy or export it anew."
        ) from error


def _picture(image: ImageFile.ImageFile, max_pixels: int) -> Image.Image:
    _check_size(image.size, max_pixels)
    orientation = _orientation(image)
    image.load()
    return turned(to_grey_or_rgb(image), orientation)


def _tiff(data: bytes, frame: int, max_pixels: int) -> Image.Image:
    found = tiff.directories(data)
    if frame >= len(found):
        raise PageUnreadable(
            f"The TIFF has {len(found)} pages now; page {frame + 1} is no longer in it."
        )
    directory = found[frame]
    if directory.cut_off():
        raise PageUnreadable("The TIFF is cut off: its end is missing. Copy or scan it anew.")
    image = _Tiff(io.BytesIO(tiff.opened_at(data, directory)))
    _check_size(image.size, max_pixels)
    # Loading a TIFF turns it upright already, and turns 8-bit negatives round, but not deeper ones.
    image.load()
    return to_grey_or_rgb(image, min_is_white=directory.photometric == _MIN_IS_WHITE)


def _heic(data: bytes, max_pixels: int) -> Image.Image:
    try:
        import pillow_heif  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise PageUnreadable(
            "This is a HEIC picture; to read it, install the package pillow-heif."
        ) from None
    heif = pillow_heif.open_heif(io.BytesIO(data))
    _check_size(heif.size, max_pixels)
    return to_grey_or_rgb(heif.to_pillow())


def _check_size(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise PageUnreadable("The picture has no pixels.")
    if width * height > max_pixels:
        raise PageUnreadable(
            f"The picture has {width:,} x {height:,} = {width * height:,} pixels, more than the "
            f"{max_pixels:,} that are read at most; put a smaller copy in its place."
        )


def _orientation(image: Image.Image) -> object:
    try:
        return image.getexif().get(_ORIENTATION)
    except Exception:  # noqa: BLE001 - whatever is wrong with the notes, the picture may be right
        return None


def _words(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200].rstrip(".") or type(error).__name__
