"""Pages of a source and the work on them, as the engine would send it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pypdfium2
from PIL import Image

from recipes_orchestration.pages.listing import FileEntry
from recipes_orchestration.pages.probe import pages_in
from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.work import PageWork, TaskSpec

COLOUR = Step("colour", "packed_steps:colour", "1")


def picture(shade: int, size: tuple[int, int] = (60, 40)) -> Image.Image:
    image = Image.new("RGB", size, (shade, 10, 200))
    image.putpixel((3, 3), (255, 255, shade))
    return image


def jpeg(shade: int, size: tuple[int, int] = (60, 40)) -> bytes:
    stream = io.BytesIO()
    picture(shade, size).save(stream, "JPEG")
    return stream.getvalue()


def tiff(*shades: int) -> bytes:
    stream = io.BytesIO()
    first, *rest = [picture(shade) for shade in shades]
    first.save(stream, "TIFF", save_all=True, append_images=rest)
    return stream.getvalue()


def pdf(pages: int) -> bytes:
    document = pypdfium2.PdfDocument.new()
    for number in range(pages):
        document.new_page(100 + number, 50).close()
    stream = io.BytesIO()
    document.save(stream)
    document.close()
    return stream.getvalue()


def works_of(root: Path, files: Mapping[str, bytes], steps: Sequence[str]) -> list[PageWork]:
    """Writes the files and finds their pages as discovery does."""
    works: list[PageWork] = []
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        entry = FileEntry(name, str(Path(name).parent), len(data), "1")
        works += [
            PageWork(page.page_id, page.sha256, page.file, page.frame, tuple(steps))
            for page in pages_in(entry, data)
        ]
    return works


def spec_of(
    root: Path,
    works: Sequence[PageWork],
    steps: Sequence[Step] = (COLOUR,),
    import_path: str = "/nowhere",
    **more: Any,
) -> TaskSpec:
    return TaskSpec(
        steps=tuple(steps),
        pages=tuple(works),
        reader=SourceReader(str(root)),
        import_path=import_path,
        **more,
    )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
