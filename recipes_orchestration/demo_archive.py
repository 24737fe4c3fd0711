"""A small archive of page images, drawn here so that a demo and the tests need no download.

Letters, minutes and ledgers of a town that never was, in two styles of type, slightly turned,
tinted and noisy, with the true text beside each page. Drawn with Pillow and the two fonts inside
it. The same seed draws the same pages.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from .demo_texts import ledger_page, letter_page, minutes_page

__all__ = ["FOLDERS", "draw_archive"]

FOLDERS = ("letters-1891", "letters-1892", "minutes-1903", "ledgers-1910")
"""The folders of the archive."""

_PAGE = (1000, 1400)
_MARGIN = 90
_PRINT_SIZE = 25
_PRINT_STEP = 42
# The second style is Pillow's bitmap Courier of 6 x 11 points, blown up as a worn typewriter.
_TYPED_SCALE = 2.3
_TYPED_STEP = 46
_PAPERS = ((244, 236, 216), (236, 228, 205), (248, 244, 232), (230, 222, 200))
_INKS = ((30, 28, 40), (48, 36, 28), (20, 20, 20))


@dataclass(frozen=True)
class _Drawn:
    image: Image.Image
    text: str


def draw_archive(folder: Path, seed: int = 7) -> None:
    """Draws at least 60 page images into the four `FOLDERS` below `folder`, which is made.

    JPEG and PNG pages, one PDF of 4 pages, one TIFF of 3, one page that lies in two folders with
    equal bytes, and one JPEG that is cut off in the middle (`minutes-1903/p099.jpg`), which no
    reader opens. Beside each readable page lies its text as `<file>.gt.txt`; the pages of the PDF
    and the TIFF have `<file>#0001.gt.txt` and so on. About 8 MB, in some seconds. Files of the
    same names are overwritten, others are left alone.
    """
    # Not for secrets: the same archive every time is the point.
    chance = random.Random(seed)  # noqa: S311
    noise = np.random.default_rng(seed)
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(1, 19):
        page = _draw(letter_page(chance, 1891), number % 2 == 0, chance, noise)
        _save(folder / "letters-1891" / f"p{number}.jpg", page)
    for number in range(1, 17):
        page = _draw(letter_page(chance, 1892), number % 3 == 0, chance, noise)
        _save(folder / "letters-1892" / f"p{number}.jpg", page)
    for number in range(1, 17):
        page = _draw(minutes_page(chance, 1903, number), True, chance, noise)
        _save(folder / "minutes-1903" / f"p{number:03}.jpg", page)
    for number in range(1, 9):
        page = _draw(ledger_page(chance, 1910, number), False, chance, noise)
        _save(folder / "ledgers-1910" / f"leaf {number}.png", page)
    _save_several(
        folder / "letters-1892" / "bundle.pdf",
        [_draw(letter_page(chance, 1892), False, chance, noise) for _ in range(4)],
    )
    _save_several(
        folder / "ledgers-1910" / "index.tif",
        [_draw(ledger_page(chance, 1910, 90 + leaf), True, chance, noise) for leaf in range(3)],
    )
    _copy(folder / "letters-1891" / "p3.jpg", folder / "letters-1892" / "p3-again.jpg")
    whole = (folder / "minutes-1903" / "p001.jpg").read_bytes()
    (folder / "minutes-1903" / "p099.jpg").write_bytes(whole[: len(whole) // 3])


def _draw(
    lines: Sequence[str], typed: bool, chance: random.Random, noise: np.random.Generator
) -> _Drawn:
    ink = Image.new("L", _PAGE, 0)
    write = _type_line if typed else _print_line
    step = _TYPED_STEP if typed else _PRINT_STEP
    top = _MARGIN + chance.randint(0, 40)
    for number, line in enumerate(lines):
        if line:
            write(ink, line, (_MARGIN, top + number * step), chance)
    angle = chance.uniform(-1.2, 1.2)
    ink = ink.rotate(angle, Image.Resampling.BICUBIC)
    paper = Image.new("RGB", _PAGE, chance.choice(_PAPERS))
    paper.paste(chance.choice(_INKS), (0, 0), ink)
    # One coarse layer for stains, one fine layer for grain.
    width, height = _PAGE
    stains = Image.fromarray(noise.integers(0, 255, (12, 9), dtype=np.uint8))
    coarse = np.asarray(stains.resize(_PAGE, Image.Resampling.BICUBIC), dtype=np.float32)
    grain = noise.standard_normal((height, width), dtype=np.float32) * 5
    spoilt = np.asarray(paper, dtype=np.float32) + ((coarse - 128) / 16 + grain)[:, :, None]
    image = Image.fromarray(np.clip(spoilt, 0, 255).astype(np.uint8))
    return _Drawn(image, "\n".join(line for line in lines if line) + "\n")


def _print_line(ink: Image.Image, line: str, place: tuple[int, int], chance: random.Random) -> None:
    font = ImageFont.load_default(_PRINT_SIZE)
    ImageDraw.Draw(ink).text(place, line, fill=chance.randint(215, 255), font=font)


def _type_line(ink: Image.Image, line: str, place: tuple[int, int], chance: random.Random) -> None:
    font = ImageFont.load_default_imagefont()
    left = float(place[0])
    for char in line:
        stamp = Image.new("L", (8, 15), 0)
        ImageDraw.Draw(stamp).text((1, 2), char, fill=255, font=font)
        size = (round(8 * _TYPED_SCALE), round(15 * _TYPED_SCALE))
        # A worn machine: no letter is quite level or quite as dark as the next.
        force = chance.uniform(0.75, 1.0)
        large = stamp.resize(size, Image.Resampling.BICUBIC).point(lambda v, f=force: int(v * f))
        ink.paste(255, (round(left), place[1] + chance.choice((0, 0, 0, 1, -1))), large)
        left += 6 * _TYPED_SCALE


def _save(path: Path, page: _Drawn) -> None:
    if path.suffix == ".png":
        ImageOps.posterize(page.image.convert("L"), 4).save(path)
    else:
        page.image.save(path, quality=60)
    _text_path(path, None).write_text(page.text, "utf-8")


def _save_several(path: Path, pages: Sequence[_Drawn]) -> None:
    first, *others = [page.image.convert("L") for page in pages]
    settings = {"resolution": 120} if path.suffix == ".pdf" else {"compression": "jpeg"}
    held = io.BytesIO()
    kind = "PDF" if path.suffix == ".pdf" else "TIFF"
    first.save(held, kind, save_all=True, append_images=others, **settings)
    path.write_bytes(held.getvalue())
    for number, page in enumerate(pages, 1):
        _text_path(path, number).write_text(page.text, "utf-8")


def _copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())
    _text_path(target, None).write_bytes(_text_path(source, None).read_bytes())


def _text_path(path: Path, number: int | None) -> Path:
    part = "" if number is None else f"#{number:04}"
    return path.with_name(f"{path.name}{part}.gt.txt")


def _main() -> None:
    """`python -m recipes_orchestration.demo_archive DIR`: draws the archive unless it is there."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m recipes_orchestration.demo_archive DIR")
    folder = Path(sys.argv[1])
    if not (folder / FOLDERS[-1]).is_dir():
        draw_archive(folder)
    sys.stderr.write(f"The pages are in {folder}\n")


if __name__ == "__main__":
    _main()
