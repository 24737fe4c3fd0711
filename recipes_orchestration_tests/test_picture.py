"""The picture that a model is sent: the file's own bytes where they will do, else made to fit."""

from __future__ import annotations

import io
import time
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from recipes_orchestration.errors import PageUnreadable
from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.picture import MOST_BYTES, PictureSettings, picture_of
from recipes_orchestration.steps.picture_header import plain_header

from .page_files import chunk, encoded, picture, tiff_of

PLAIN = PictureSettings()


def page_of(data: bytes, frame: int | None = None, **options: Any) -> Page:
    return Page("a/b.jpg", "x", "a/b.jpg", frame, lambda: data, **options)


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def noise(width: int, height: int) -> Image.Image:
    values = np.random.default_rng(1).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def exif(orientation: int) -> bytes:
    notes = Image.Exif()
    notes[274] = orientation
    return notes.tobytes()


@pytest.mark.parametrize(
    ("format", "options", "media_type"),
    [
        ("JPEG", {}, "image/jpeg"),
        ("JPEG", {"progressive": True}, "image/jpeg"),
        ("JPEG", {"exif": exif(1)}, "image/jpeg"),
        ("PNG", {}, "image/png"),
        ("WEBP", {}, "image/webp"),
        ("WEBP", {"lossless": True}, "image/webp"),
    ],
)
def test_a_file_that_fits_is_sent_as_it_is(
    format: str, options: dict[str, Any], media_type: str
) -> None:
    data = encoded(picture(), format, **options)
    sent = picture_of(page_of(data), PLAIN)
    assert sent.data is data
    assert sent.media_type == media_type


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_headers_say_what_pillow_says(format: str) -> None:
    for mode in ("RGB", "L"):
        data = encoded(picture((61, 97), mode), format)
        header = plain_header(data)
        assert header is not None
        assert (header.width, header.height) == opened(data).size == (61, 97)
        assert header.grey == (mode == "L" and format != "WEBP")


@pytest.mark.parametrize("turn", range(2, 9))
def test_a_turned_jpeg_is_sent_upright(turn: int) -> None:
    page = page_of(encoded(picture(), "JPEG", exif=exif(turn)))
    sent = picture_of(page, PLAIN)
    assert sent.data is not page.data
    assert opened(sent.data).size == page.image.size


@pytest.mark.parametrize(
    ("format", "image", "options"),
    [
        ("PNG", picture(mode="RGBA"), {}),
        ("PNG", picture(mode="P"), {"transparency": 0}),
        ("PNG", Image.fromarray(np.full((9, 8), 900, dtype=np.uint16)), {}),
        ("PNG", picture(), {"exif": exif(6)}),
        ("PNG", picture(), {"save_all": True, "append_images": [picture((60, 90), "L")]}),
        ("WEBP", Image.new("RGBA", (8, 9)), {}),
        ("WEBP", picture(), {"exif": exif(6)}),
        ("WEBP", picture(), {"save_all": True, "append_images": [Image.new("RGB", (60, 90))]}),
        ("JPEG", picture(mode="CMYK"), {}),
        ("JPEG", picture(), {"exif": b"Exif\0\0no notes"}),
        ("JPEG", picture(), {"xmp": b"<x tiff:Orientation='6'/>"}),
        ("MPO", picture(), {"save_all": True, "append_images": [picture()]}),
        ("GIF", picture(), {}),
        ("BMP", picture(), {}),
        ("TIFF", picture(), {}),
    ],
)
def test_whatever_may_be_seen_otherwise_is_decoded(
    format: str, image: Image.Image, options: dict[str, Any]
) -> None:
    page = page_of(encoded(image, format, **options))
    sent = picture_of(page, PLAIN)
    assert sent.media_type == "image/jpeg"
    assert opened(sent.data).format == "JPEG"
    assert opened(sent.data).size == page.image.size


def test_what_is_transparent_is_sent_on_white() -> None:
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    sent = picture_of(page_of(encoded(clear, "PNG")), PLAIN)
    assert opened(sent.data).convert("L").getextrema() == (255, 255)


def test_a_larger_picture_is_made_smaller() -> None:
    page = page_of(encoded(picture((3000, 1501)), "JPEG"))
    assert opened(picture_of(page, PLAIN).data).size == (2000, 1001)


def test_a_smaller_picture_is_never_made_larger() -> None:
    page = page_of(encoded(picture((60, 90)), "TIFF"))
    assert opened(picture_of(page, PLAIN).data).size == (60, 90)


def test_a_narrow_picture_keeps_a_pixel() -> None:
    page = page_of(encoded(Image.new("L", (9000, 1)), "PNG"))
    assert opened(picture_of(page, PLAIN).data).size == (2000, 1)


@pytest.mark.parametrize("format", ["jpeg", "png", "webp"])
def test_the_format_is_the_one_asked_for(format: Any) -> None:
    for given in ("JPEG", "PNG", "WEBP", "TIFF"):
        page = page_of(encoded(picture(), given))
        sent = picture_of(page, PictureSettings(format=format))
        assert sent.media_type == f"image/{format}"
        assert opened(sent.data).format == format.upper()
        assert (sent.data is page.data) == (given.lower() == format)


def test_grey_takes_the_colours_away() -> None:
    grey = PictureSettings(grey=True)
    assert opened(picture_of(page_of(encoded(picture(), "JPEG")), grey).data).mode == "L"
    data = encoded(picture(mode="L"), "JPEG")
    assert picture_of(page_of(data), grey).data is data


def test_quality_makes_it_smaller() -> None:
    page = page_of(encoded(noise(300, 300), "TIFF"))
    sizes = [len(picture_of(page, PictureSettings(quality=each)).data) for each in (30, 60, 95)]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("format", ["jpeg", "png"])
def test_nothing_is_larger_than_providers_take(format: Any) -> None:
    image = noise(2000, 1800)
    page = page_of(encoded(image, "TIFF"))
    sent = picture_of(page, PictureSettings(format=format, quality=100))
    assert len(sent.data) <= MOST_BYTES
    assert max(opened(sent.data).size) >= 900


def test_a_file_over_the_bytes_is_made_smaller() -> None:
    data = encoded(noise(1500, 1500), "PNG")
    assert len(data) > MOST_BYTES
    assert len(picture_of(page_of(data), PLAIN).data) <= MOST_BYTES


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_a_file_that_is_cut_off_is_no_page(format: str) -> None:
    data = encoded(noise(100, 100), format)
    with pytest.raises(PageUnreadable):
        picture_of(page_of(data[: len(data) * 2 // 3]), PLAIN)


def test_a_damaged_png_is_no_page() -> None:
    data = bytearray(encoded(noise(100, 100), "PNG"))
    data[len(data) // 2] ^= 1
    with pytest.raises(PageUnreadable, match="damaged"):
        picture_of(page_of(bytes(data)), PLAIN)


def test_the_bound_on_pixels_holds_for_files_that_would_pass() -> None:
    page = page_of(encoded(picture((60, 90)), "JPEG"), max_pixels=5000)
    with pytest.raises(PageUnreadable, match="more than the 5,000"):
        picture_of(page, PLAIN)


def test_a_page_inside_a_file_is_that_page() -> None:
    sent = picture_of(page_of(tiff_of(3), frame=2), PLAIN)
    assert opened(sent.data).size == (62, 90)


def test_a_png_with_a_text_about_its_turn_is_decoded() -> None:
    data = encoded(picture(), "PNG")
    turned = data[:33] + chunk(b"tEXt", b"XML:com.adobe.xmp\0tiff:Orientation=6") + data[33:]
    assert picture_of(page_of(turned), PLAIN).data is not turned


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_no_header_is_a_crash(format: str) -> None:
    data = encoded(picture(), format, exif=exif(1))
    for end in range(0, min(len(data), 400)):
        plain_header(data[:end])
    for at in range(min(len(data), 400)):
        for value in (0, 0x7F, 0xFF):
            plain_header(data[:at] + bytes([value]) + data[at + 1 :])


@pytest.mark.parametrize("value", [{"max_side": 100}, {"quality": 0}, {"format": "gif"}, {"a": 1}])
def test_settings_out_of_bounds_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PictureSettings(**value)


def test_a_file_that_fits_costs_next_to_nothing() -> None:
    data = encoded(noise(700, 700), "JPEG", quality=90)
    assert len(data) > 300_000
    pages = [page_of(data) for _ in range(500)]
    started = time.process_time()
    for page in pages:
        assert picture_of(page, PLAIN).data is data
    assert time.process_time() - started < 0.25  # some 0.015 s; decoding takes over 2 s
