"""Pictures for models are decoded in worker processes: a bad page ends no run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from recipes_orchestration.errors import DecoderEnded, NoDecoder, PageUnreadable
from recipes_orchestration.places import decoders as decoders_module
from recipes_orchestration.places.decoders import Decoders
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.steps import picture

from .archive import find_pages
from .cloud_archive import CloudArchive, make_cloud_archive, read_step, run_all
from .packed_work import jpeg, spec_of, tiff, works_of

DEADLY = (333, 40)
ENCODED: Callable[..., Any] = picture._encoded


@dataclass(frozen=True)
class Broken:
    """What the workers do in place of encoding; it is pickled, as they do not see patches."""

    hangs: bool = False

    def __call__(self, image: Image.Image, *args: Any) -> Any:
        if image.size == DEADLY:
            time.sleep(60 if self.hangs else 0)
            os._exit(7)
        return ENCODED(image, *args)


def size_of(image: Image.Image) -> tuple[int, int]:
    return image.size


def process_of(_: Image.Image) -> int:
    return os.getpid()


@pytest.fixture
def decoders() -> Iterator[Decoders]:
    with closing(Decoders(workers=1)) as opened:
        yield opened


def test_a_page_is_the_same_where_it_is_decoded_apart(tmp_path: Path, decoders: Decoders):
    works = works_of(tmp_path, {"a.jpg": jpeg(9, (50, 70)), "b.tif": tiff(1, 200)}, ["read"])
    spec = spec_of(tmp_path, works)
    for work in works:
        page = decoders.page(spec, work)
        here = page.__class__(page.page_id, page.sha256, page.file, page.frame, page.fetch)
        assert page.image.mode == here.image.mode
        assert page.image.tobytes() == here.image.tobytes()


def test_what_is_made_of_a_picture_is_made_in_a_worker(tmp_path: Path, decoders: Decoders):
    works = works_of(tmp_path, {"a.jpg": jpeg(9, (50, 70))}, ["read"])
    page = decoders.page(spec_of(tmp_path, works), works[0])
    assert page.pictured(size_of) == (50, 70)
    assert page.pictured(process_of) != os.getpid()


def test_bytes_that_are_no_page_say_so(tmp_path: Path, decoders: Decoders):
    works = works_of(tmp_path, {"a.jpg": jpeg(9)}, ["read"])
    page = decoders.page(spec_of(tmp_path, works, max_pixels=10), works[0])
    with pytest.raises(PageUnreadable, match="pixels"):
        page.pictured(size_of)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_decoder_that_ends_or_hangs_ends_no_process_of_ours(
    tmp_path: Path, decoders: Decoders, hangs: bool
):
    works = works_of(tmp_path, {"a.jpg": jpeg(1, DEADLY), "b.jpg": jpeg(2)}, ["read"])
    spec = spec_of(tmp_path, works, page_timeout=5.0)
    deadly, good = (decoders.page(spec, work) for work in works)
    with pytest.raises(DecoderEnded) as ended:
        deadly.pictured(Broken(hangs))
    assert ended.value.timed_out is hangs
    assert good.pictured(size_of) == (60, 40)


def test_no_page_is_to_blame_when_no_decoder_can_be_started(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
):
    class Full:
        def schedule(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("Unable to start worker")

        def stop(self) -> None: ...
        def join(self) -> None: ...

    monkeypatch.setattr(decoders_module, "worker_pool", lambda _: Full())
    archive = deadly_archive(tmp_path / "project")
    with archive.engine() as engine:
        with pytest.raises(NoDecoder, match=r"a/0000\.png: Unable to start worker"):
            run_all(engine)
        assert engine.ledger.holds.attempts_of("letters", "letters", "a/0001") == {}


def deadly_archive(folder: Path) -> CloudArchive:
    """Four pages that must be decoded for the model, of which one ends its decoder."""
    image = {"max_side": 200, "format": "jpeg"}
    steps = [read_step("anthropic", image=image)]
    archive = make_cloud_archive(folder, pages=0, steps=steps)
    archive.draw([f"a/{number:04d}.png" for number in range(3)])
    Image.new("L", DEADLY, 200).save(archive.pages / "a" / "0003.png")
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def test_a_page_that_ends_its_decoder_is_held_and_the_others_are_read(
    tmp_path: Path, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(picture, "_encoded", Broken())
    archive = deadly_archive(tmp_path / "project")
    with archive.engine() as engine:
        view = run_all(engine)
        (held,) = view.steps["read"].held
        assert view.steps["read"].landed == 3
        assert held.page_id == "a/0003.png"
        assert "The process that decoded this page ended (exit code 7" in held.words
