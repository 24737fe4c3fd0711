"""Every kind of page file becomes one upright picture, or one reason."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageOps

from recipes_orchestration.errors import PageUnreadable
from recipes_orchestration.pages import pdf, tiff
from recipes_orchestration.pages.decode import decode
from recipes_orchestration.pages.listing import FileEntry
from recipes_orchestration.pages.pixels import to_grey_or_rgb
from recipes_orchestration.pages.probe import pages_in, probe

from .page_files import (
    chained,
    encoded,
    grey_tiff,
    jpeg,
    pdf_of,
    picture,
    png_claiming,
    tiff_of,
)

UPRIGHT = picture()


def difference(image: Image.Image, expected: Image.Image = UPRIGHT) -> float:
    """Mean difference of two pictures' greys, from 0 to 255; a turned picture has over 8."""
    assert image.mode in {"L", "RGB"}
    assert image.size == expected.size
    one, other = (np.asarray(each.convert("L"), np.int16) for each in (image, expected))
    return float(np.abs(one - other).mean())


def grey16(scale: int) -> Image.Image:
    return Image.fromarray(np.asarray(UPRIGHT.convert("L")).astype(np.uint16) * scale)


def ink_on_nothing() -> Image.Image:
    ink = Image.new("RGBA", UPRIGHT.size, (0, 0, 0, 0))
    ink.putalpha(ImageOps.invert(UPRIGHT.convert("L")))
    return ink


GOOD = {
    "jpeg": encoded(UPRIGHT, "JPEG"),
    "progressive jpeg": encoded(UPRIGHT, "JPEG", progressive=True),
    "grey jpeg": encoded(picture(mode="L"), "JPEG"),
    "cmyk jpeg": encoded(picture(mode="CMYK"), "JPEG"),
    "jpeg with more after it": jpeg() + bytes(100) + b"note",
    "jpeg with a wrong profile": encoded(UPRIGHT, "JPEG", icc_profile=b"no profile"),
    "mpo": encoded(UPRIGHT, "MPO", save_all=True, append_images=[picture((50, 70))]),
    "png": encoded(UPRIGHT, "PNG"),
    "palette png": encoded(UPRIGHT.quantize(8), "PNG"),
    "1-bit png": encoded(picture(mode="1"), "PNG"),
    "grey and alpha png": encoded(picture(mode="LA"), "PNG"),
    "16-bit png": encoded(grey16(257), "PNG"),
    "ink on nothing": encoded(ink_on_nothing(), "PNG"),
    "transparent colour": encoded(UPRIGHT, "PNG", transparency=(255, 255, 255)),
    "g4 tiff": encoded(picture(mode="1"), "TIFF", compression="group4"),
    "g3 tiff": encoded(picture(mode="1"), "TIFF", compression="group3"),
    "lzw tiff": encoded(UPRIGHT, "TIFF", compression="tiff_lzw"),
    "jpeg in tiff": encoded(UPRIGHT, "TIFF", compression="jpeg"),
    "big tiff": encoded(UPRIGHT, "TIFF", big_tiff=True),
    "cmyk tiff": encoded(picture(mode="CMYK"), "TIFF"),
    "16-bit tiff": encoded(grey16(257), "TIFF"),
    "12 bits in 16": encoded(grey16(16), "TIFF"),
    "float tiff": encoded(
        Image.fromarray(np.asarray(UPRIGHT.convert("L"), np.float32) / 255), "TIFF"
    ),
    "min is white": grey_tiff(60, 90, 8, 0, ImageOps.invert(picture(mode="L")).tobytes()),
    "16-bit min is white": grey_tiff(
        60, 90, 16, 0, (65535 - np.asarray(grey16(257))).astype("<u2").tobytes()
    ),
    "webp": encoded(UPRIGHT, "WEBP"),
    "webp of two frames": encoded(
        UPRIGHT, "WEBP", save_all=True, append_images=[Image.new("RGB", UPRIGHT.size)]
    ),
    "gif": encoded(picture(mode="L"), "GIF"),
    "gif of two frames": encoded(
        UPRIGHT, "GIF", save_all=True, append_images=[Image.new("RGB", UPRIGHT.size)]
    ),
    "bmp": encoded(UPRIGHT, "BMP"),
    "jpeg 2000": encoded(UPRIGHT, "JPEG2000"),
    "avif": encoded(UPRIGHT, "AVIF"),
}
# What follows the page in the file may be missing.
MORE_AFTER_IT = {"jpeg with more after it", "mpo", "gif of two frames"}


@pytest.mark.parametrize("name", GOOD)
def test_it_is_read_as_one_upright_page(name: str) -> None:
    assert probe(GOOD[name]).frames == (None,)
    assert difference(decode(GOOD[name])) < 4


@pytest.mark.parametrize("name", sorted(GOOD.keys() - MORE_AFTER_IT))
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
@pytest.mark.filterwarnings("ignore")  # the reader must notice, not a warning made an error
def test_a_part_of_a_file_is_never_read_as_a_page(name: str, part: float) -> None:
    with pytest.raises(PageUnreadable) as caught:
        decode(GOOD[name][: int(len(GOOD[name]) * part)])
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", [1, 2, 3, 4, 5, 6, 7, 8, 0, 99])
def test_a_turned_picture_is_put_upright(format: str, orientation: int) -> None:
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = UPRIGHT.transpose(back[orientation]) if orientation in back else UPRIGHT
    exif = Image.Exif()
    exif[274] = orientation
    assert difference(decode(encoded(stored, format, exif=exif))) < 4


def test_pages_of_a_tiff_are_decoded_one_by_one() -> None:
    data = tiff_of(12)
    assert probe(data).frames == tuple(range(12))
    for frame in (0, 5, 11):
        assert difference(decode(data, frame=frame), picture((60 + frame, 90))) < 1
    big = tiff_of(3, big_tiff=True)
    assert difference(decode(big, frame=2), picture((62, 90))) < 1


def test_a_page_that_is_no_longer_in_its_file_is_said_so() -> None:
    for data in (tiff_of(2), pdf_of([(50, 50)] * 2), jpeg()):
        with pytest.raises(PageUnreadable, match="page 3 is no longer in it"):
            decode(data, frame=2)


def test_previews_inside_a_tiff_are_no_pages() -> None:
    page = grey_tiff(60, 90, 8, 1, picture(mode="L").tobytes())
    preview = grey_tiff(4, 4, 8, 1, bytes(16), [(254, 4, [1])])
    offset = len(page)
    body = preview[8:]
    start = offset + 16
    moved = body.replace(
        struct.pack("<HHII", 273, 4, 1, 8), struct.pack("<HHII", 273, 4, 1, offset)
    )
    both = chained(page, start) + moved
    assert [found.preview for found in tiff.directories(both)] == [False, True]
    assert probe(both).frames == (None,)
    assert difference(decode(both)) == 0


def test_a_tiff_that_leads_back_into_itself_ends() -> None:
    page = grey_tiff(60, 90, 8, 1, picture(mode="L").tobytes())
    looped = chained(page, 8 + 60 * 90)
    assert probe(looped).frames == (None,)
    assert difference(decode(looped)) == 0


def test_a_tiff_with_a_page_beyond_its_end_is_one_reason() -> None:
    page = grey_tiff(60, 90, 8, 1, picture(mode="L").tobytes())
    probed = probe(chained(page, 1 << 30))
    assert probed.frames == (None,)
    assert "cut off after 1 pages" in (probed.problem or "")


def test_a_tiff_of_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiff, "MAX_PAGES", 5)
    assert probe(tiff_of(5)).frames == tuple(range(5))
    assert "more than 5 pages" in (probe(tiff_of(6)).problem or "")


def test_pdf_pages_are_numbered_and_rendered_at_300_dpi() -> None:
    data = pdf_of([(72, 144), (36, 36)], drawing=b"0 0 0 rg 0 132 36 12 re f")
    assert probe(data).frames == (0, 1)
    page = decode(data)
    assert (page.mode, page.size) == ("RGB", (300, 600))
    assert page.getpixel((75, 25)) == (0, 0, 0)
    assert page.getpixel((225, 25)) == (255, 255, 255)
    assert decode(data, frame=1).size == (150, 150)


def test_a_pdf_of_one_page_is_numbered_too() -> None:
    entry = FileEntry("a/b.pdf", "a", 0, "1")
    (page,) = pages_in(entry, pdf_of([(50, 50)]))
    assert (page.page_id, page.frame) == ("a/b.pdf#0001", 0)


def test_the_turn_of_a_pdf_page_is_honoured() -> None:
    data = pdf_of([(72, 144)], rotate=90, drawing=b"0 0 0 rg 0 132 36 12 re f")
    page = decode(data)
    assert page.size == (600, 300)
    assert page.getpixel((575, 75)) == (0, 0, 0)


def test_a_giant_pdf_page_is_rendered_within_bounds() -> None:
    page = decode(pdf_of([(14400, 14400)]))
    assert page.width * page.height <= pdf.MAX_RENDERED_PIXELS * 1.001
    assert page.width == page.height
    small = decode(pdf_of([(14400, 14400)]), max_pixels=10_000)
    assert small.size == (100, 100)


def test_pdfs_that_cannot_be_read_have_their_reason() -> None:
    assert "needs a password" in (probe(pdf_of([(50, 50)], password="secret")).problem or "")
    assert probe(pdf_of([(50, 50)], password="")).frames == (0,)
    assert decode(pdf_of([(72, 72)], password="")).size == (300, 300)
    assert "0 pages" in (probe(pdf_of([])).problem or "")
    assert "cannot be opened" in (probe(b"%PDF-1.4\n%%EOF\n").problem or "")
    with pytest.raises(PageUnreadable, match="needs a password"):
        decode(pdf_of([(50, 50)], password="secret"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes"),
        (b"This page is missing.\n", "is text"),
        (b"\n <!DOCTYPE html><html></html>", "web page"),
        (b"PK\x05\x06" + bytes(18), "ZIP"),
        (bytes(4000), "zero bytes"),
        (b"\x01\x02\x03\xff\xfe\xfd\x00\x11\x22", "begins with the bytes 01 02 03 ff fe fd 00 11"),
        (b"II*\0\xff\xff\xff\x7f", "before its first page"),
        (b"II*\0\0\0\0\0", "no page in it"),
    ],
)
def test_what_is_no_page_is_told_by_its_content(data: bytes, words: str) -> None:
    probed = probe(data)
    assert probed.frames == (None,)
    assert words in (probed.problem or "")
    with pytest.raises(PageUnreadable, match=words):
        decode(data)


def test_a_flipped_byte_in_a_png_is_noticed() -> None:
    data = bytearray(GOOD["png"])
    data[len(data) // 2] ^= 255
    with pytest.raises(PageUnreadable, match="checksum"):
        decode(bytes(data))


def test_a_jpeg_whose_end_is_zeros_is_not_read() -> None:
    data = GOOD["jpeg"]
    with pytest.raises(PageUnreadable, match="cut off"):
        decode(data[: len(data) // 2] + bytes(len(data) // 2))


def test_a_picture_of_too_many_pixels_is_refused_from_its_header() -> None:
    with pytest.raises(PageUnreadable, match=r"60,000 x 60,000 = 3,600,000,000 pixels"):
        decode(png_claiming(60_000, 60_000))
    with pytest.raises(PageUnreadable, match=r"5,400 pixels, more than the 5,000"):
        decode(GOOD["png"], max_pixels=5_000)


@pytest.mark.parametrize("format", ["PNG", "TIFF", "GIF"])
def test_no_bound_of_the_whole_process_gets_in_the_way(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    data = encoded(picture(mode="L"), format)
    assert difference(decode(data)) < 1
    assert Image.MAX_IMAGE_PIXELS == 100


def test_heic_without_its_package_names_it() -> None:
    with pytest.raises(PageUnreadable, match=r"pillow-heif|damaged"):
        decode(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(200))


def test_lab_becomes_its_lightness_and_unknown_pixels_a_reason() -> None:
    lab = Image.new("LAB", (3, 3), (200, 0, 0))
    assert to_grey_or_rgb(lab).getpixel((1, 1)) == 200


def test_many_threads_may_decode_at_once() -> None:
    files = [GOOD["jpeg"], GOOD["jpeg in tiff"], pdf_of([(14.3, 21.5)]), GOOD["png"]] * 15
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(decode, files))
    assert [page.size for page in pages] == [(60, 90)] * len(files)


def test_pages_inside_a_file_have_hashes_of_their_own() -> None:
    entry = FileEntry("x.tif", ".", 0, "1")
    pages = pages_in(entry, tiff_of(3))
    assert len({page.sha256 for page in pages}) == 3
    assert [page.page_id for page in pages] == ["x.tif#0001", "x.tif#0002", "x.tif#0003"]
    assert pages_in(entry, tiff_of(3)) == pages
