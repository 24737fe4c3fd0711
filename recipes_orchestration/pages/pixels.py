"""Any picture to upright 8-bit RGB or grey."""

from __future__ import annotations

import math
from array import array

from PIL import Image

from ..errors import PageUnreadable

__all__ = ["to_grey_or_rgb", "turned"]

# EXIF 2.32, tag 274: how the stored picture is turned to stand upright.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LEAST_BITS = 8


def turned(image: Image.Image, orientation: object) -> Image.Image:
    """The picture upright; an orientation that means nothing turns nothing."""
    turn = _TURNS.get(orientation) if isinstance(orientation, int) else None
    return image if turn is None else image.transpose(turn)


def to_grey_or_rgb(image: Image.Image, *, min_is_white: bool = False) -> Image.Image:
    """The picture as mode L or RGB, with what is transparent on white.

    Grey of more than 8 bits is scaled from the bits that it uses, so 12-bit values kept in 16
    bits are not black. `min_is_white` turns such grey round. Colour profiles are not applied.
    Raises `PageUnreadable` for a mode that is not known.
    """
    mode = image.mode
    if mode.startswith(("I", "F")):
        return _deep_grey(image, min_is_white=min_is_white)
    if mode in {"RGBA", "LA", "PA", "RGBa", "La"} or "transparency" in image.info:
        return _on_white(image)
    match mode:
        case "L" | "RGB":
            return image
        case "1":
            return image.convert("L")
        case "P":
            return image.convert("RGB")
        case "CMYK" | "YCbCr" | "HSV" | "RGBX":
            return image.convert("RGB")
        case "LAB":
            return image.getchannel(0)
        case _:
            raise PageUnreadable(f"The picture has pixels of an unknown kind ({mode}).")


def _deep_grey(image: Image.Image, *, min_is_white: bool) -> Image.Image:
    floats = image.mode == "F"
    values = image if image.mode in ("I", "F") else image.convert("I")
    least, most = _extremes(values)
    if not (math.isfinite(least) and math.isfinite(most)):
        values = _finite(values)
        most = _extremes(values)[1]
    scale = 255 / (1.0 if floats and most <= 1 else _top_of(max(most, 0)))
    # As floats: what is below 0 or above 255 is cut off, and fractions are cut off once.
    grey = values.convert("F").point(lambda value: value * scale + 0).convert("L")
    return grey.point(lambda value: 255 - value) if min_is_white else grey


def _extremes(image: Image.Image) -> tuple[float, float]:
    least, most = image.getextrema()
    assert isinstance(least, int | float)
    assert isinstance(most, int | float)
    return least, most


def _finite(image: Image.Image) -> Image.Image:
    """The picture with 0 for what is no number or endless."""
    values = array("f", image.tobytes())
    finite = array("f", (value if math.isfinite(value) else 0.0 for value in values))
    return Image.frombytes("F", image.size, finite.tobytes())


def _top_of(most: float) -> float:
    """The largest value of as many bits as `most` needs, at least 8."""
    return float(2 ** max(int(most).bit_length(), _LEAST_BITS) - 1)


def _on_white(image: Image.Image) -> Image.Image:
    grey = image.mode in {"L", "LA", "La", "1"}
    clear = image.convert("RGBA")
    paper = Image.new("RGBA", clear.size, (255, 255, 255, 255))
    paper.alpha_composite(clear)
    return paper.convert("L" if grey else "RGB")
