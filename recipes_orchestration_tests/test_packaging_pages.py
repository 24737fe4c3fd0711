"""Pages packed into a batch folder: which bytes go, which pages cannot, and what is read again."""

from __future__ import annotations

import io
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from recipes_orchestration.errors import PlaceError
from recipes_orchestration.pages import local_disk
from recipes_orchestration.pages.source import SourceReader
from recipes_orchestration.places.task_folders.packaging import Packaging, PackedTask
from recipes_orchestration.recipe import Step
from recipes_orchestration.runner.task_folder import read_manifest
from recipes_orchestration.runner.work import FailureKind, PageWork, TaskSpec

from .packed_work import COLOUR, jpeg, pdf, picture, sha256, spec_of, tiff, works_of

TEXT = Step("text", "text", "1")
SMALL = {"max_side": 200, "format": "jpeg"}


def packed(batch: Path, spec: TaskSpec) -> PackedTask:
    with Packaging(batch, workers=1) as packaging:
        return packaging.pack(spec)


def bytes_of(batch: Path, task: PackedTask, number: int = 0) -> bytes:
    return (batch / "a" / "0" / task.pages[number].file).resolve().read_bytes()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read in this process."""
    seen: list[str] = []
    read = local_disk.LocalDisk.read

    def counted(disk: Any, file: str, max_bytes: int) -> bytes:
        seen.append(file)
        return read(disk, file, max_bytes)

    monkeypatch.setattr(local_disk.LocalDisk, "read", counted)
    return seen


def test_a_plain_file_goes_as_it_is(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert bytes_of(tmp_path / "batch", task) == jpeg(1)
    page = task.pages[0]
    assert (page.sha256, page.file_sha256) == (works[0].sha256, works[0].sha256)
    assert (page.frame, page.encoded) == (None, False)


def test_a_plain_file_is_never_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recipes_orchestration.places.task_folders.packaging.Encoders", None)
    files = {"cut.jpg": jpeg(1)[:200], "one.tif": tiff(7)}
    works = works_of(tmp_path / "scans", files, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert task.page_ids == ("cut.jpg", "one.tif")


def test_pages_keep_their_order(tmp_path: Path):
    files = {"a.tif": tiff(1, 2), "b.jpg": jpeg(3), "c.pdf": pdf(2), "d.jpg": jpeg(4)}
    works = works_of(tmp_path / "scans", files, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert list(task.page_ids) == [work.page_id for work in works]


def test_a_page_of_a_tiff_goes_as_a_png_of_the_same_pixels(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.tif": tiff(1, 2)}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    data = bytes_of(tmp_path / "batch", task, 1)
    assert Image.open(io.BytesIO(data)).tobytes() == picture(2).tobytes()
    page = task.pages[1]
    assert (page.frame, page.encoded, page.file_sha256) == (None, True, sha256(data))
    assert page.sha256 == works[1].sha256 != page.file_sha256


def test_a_page_of_a_pdf_goes_as_a_png(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.pdf": pdf(2)}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    sizes = [
        Image.open(io.BytesIO(bytes_of(tmp_path / "batch", task, number))).size for number in (0, 1)
    ]
    assert sizes[0] < sizes[1]


def test_a_pdf_goes_whole_and_once_where_its_text_is_wanted(tmp_path: Path, reads: list[str]):
    works = works_of(tmp_path / "scans", {"a.pdf": pdf(3)}, ["text"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, [TEXT]))
    assert len(os.listdir(tmp_path / "batch" / "pages")) == len(task.files) == 1
    assert bytes_of(tmp_path / "batch", task) == (tmp_path / "scans" / "a.pdf").read_bytes()
    assert [page.frame for page in task.pages] == [0, 1, 2]
    assert not any(page.encoded for page in task.pages)
    assert reads == ["a.pdf"]


def test_a_page_of_a_tiff_is_a_png_beside_a_step_on_pdfs(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.tif": tiff(1, 2)}, ["text"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, [TEXT]))
    assert [page.file[-3:] for page in task.pages] == ["png", "png"]


def test_a_picture_that_all_steps_want_smaller_goes_smaller(tmp_path: Path):
    step = replace(COLOUR, image=SMALL)
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1, (800, 400))}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, [step]))
    data = bytes_of(tmp_path / "batch", task)
    assert Image.open(io.BytesIO(data)).size == (200, 100)
    assert (task.pages[0].encoded, task.pages[0].sha256) == (True, works[0].sha256)


def test_a_picture_that_fits_already_goes_as_it_is(tmp_path: Path):
    step = replace(COLOUR, image=SMALL)
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, [step]))
    assert bytes_of(tmp_path / "batch", task) == jpeg(1)


def test_steps_that_want_other_pictures_get_the_original(tmp_path: Path):
    steps = [replace(COLOUR, image=SMALL), replace(COLOUR, name="large")]
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1, (800, 400))}, ["colour", "large"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, steps))
    assert bytes_of(tmp_path / "batch", task) == jpeg(1, (800, 400))
    assert not task.pages[0].encoded


def test_a_page_in_a_file_of_steps_that_want_other_pictures_is_no_final_picture(tmp_path: Path):
    steps = [replace(COLOUR, image=SMALL), replace(COLOUR, name="large")]
    works = works_of(tmp_path / "scans", {"a.tif": tiff(1, 2)}, ["colour", "large"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, steps))
    assert [(page.encoded, page.frame) for page in task.pages] == [(False, None)] * 2


def test_a_page_that_changed_does_not_go(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1), "b.jpg": jpeg(2)}, ["colour"])
    (tmp_path / "scans" / "a.jpg").write_bytes(jpeg(3))
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert task.page_ids == ("b.jpg",)
    assert task.decided[0].failure is not None
    assert task.decided[0].failure.kind is FailureKind.SOURCE
    assert "has changed" in task.decided[0].failure.words


def test_a_file_that_is_no_file_is_unreadable(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    (tmp_path / "scans" / "a.jpg").unlink()
    os.mkfifo(tmp_path / "scans" / "a.jpg")
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert task.decided[0].failure is not None
    assert task.decided[0].failure.kind is FailureKind.UNREADABLE


def test_a_page_in_a_file_that_changed_does_not_go(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.tif": tiff(1, 2)}, ["colour"])
    (tmp_path / "scans" / "a.tif").write_bytes(tiff(1, 3))
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert not task.pages
    assert {outcome.failure.kind for outcome in task.decided if outcome.failure} == {
        FailureKind.SOURCE
    }


def test_a_page_that_cannot_be_decoded_fails_each_step_that_waits_for_no_other(tmp_path: Path):
    steps = [
        replace(COLOUR, image=SMALL),
        replace(COLOUR, name="after", needs=("colour",), image=SMALL),
        replace(COLOUR, name="beside", image=SMALL),
    ]
    names = ["colour", "after", "beside"]
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)[:200], "b.jpg": jpeg(2)}, names)
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, steps))
    assert [(outcome.page_id, outcome.step) for outcome in task.decided] == [
        ("a.jpg", "colour"),
        ("a.jpg", "beside"),
    ]
    assert {outcome.failure.kind for outcome in task.decided if outcome.failure} == {
        FailureKind.UNREADABLE
    }
    assert task.page_ids == ("b.jpg",)


def test_a_second_time_nothing_is_read_or_decoded(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
):
    files = {"a.jpg": jpeg(1), "b.tif": tiff(1, 2), "c.pdf": pdf(1)}
    spec = spec_of(tmp_path / "scans", works_of(tmp_path / "scans", files, ["colour"]))
    first = packed(tmp_path / "batch", spec)
    reads.clear()
    monkeypatch.setattr("recipes_orchestration.places.task_folders.packaging.Encoders", None)
    assert packed(tmp_path / "batch", spec) == first
    assert reads == []


def test_a_page_file_that_lost_its_content_is_written_again(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    spec = spec_of(tmp_path / "scans", works)
    task = packed(tmp_path / "batch", spec)
    os.truncate(tmp_path / "batch" / task.files[0], 0)
    task = packed(tmp_path / "batch", spec)
    assert bytes_of(tmp_path / "batch", task) == jpeg(1)


def test_a_page_whose_file_failed_over_there_is_read_again(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    path = tmp_path / "batch" / task.files[0]
    path.write_bytes(b"x" * len(jpeg(1)))
    failed = [replace(works[0], attempts=1, failed=FailureKind.SOURCE.value)]
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", failed))
    assert bytes_of(tmp_path / "batch", task) == jpeg(1)


def test_other_settings_of_the_picture_make_another_file(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1, (800, 400))}, ["colour"])
    for side in (200, 300):
        step = replace(COLOUR, image={"max_side": side})
        task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works, [step]))
        data = bytes_of(tmp_path / "batch", task)
        assert max(Image.open(io.BytesIO(data)).size) == side


def test_pages_of_a_source_in_memory_are_packed_from_their_bytes(tmp_path: Path):
    data, frames = jpeg(1), tiff(1, 2)
    pages = [
        PageWork("a.jpg", sha256(data), "a.jpg", None, ("colour",), data=data),
        PageWork(
            "b.tif#0002", sha256(f"{sha256(frames)}#1".encode()), "b.tif", 1, ("colour",),
            data=frames,
        ),
    ]  # fmt: skip
    spec = replace(spec_of(tmp_path, pages), reader=SourceReader("memory://nowhere"))
    task = packed(tmp_path / "batch", spec)
    assert task.page_ids == ("a.jpg", "b.tif#0002")
    assert bytes_of(tmp_path / "batch", task) == data


def test_equal_pages_are_one_file(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1), "b.jpg": jpeg(1)}, ["colour"])
    task = packed(tmp_path / "batch", spec_of(tmp_path / "scans", works))
    assert len(task.pages) == 2
    assert task.files == (f"pages/{works[0].sha256}.jpg",)
    assert task.size == len(jpeg(1))


def test_a_disk_that_takes_nothing_is_said_in_words(tmp_path: Path):
    (tmp_path / "batch").write_bytes(b"")
    with pytest.raises(PlaceError, match="could not be written"):
        Packaging(tmp_path / "batch")


def test_a_task_folder_has_manifest_and_out(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1)}, ["colour"])
    with Packaging(tmp_path / "batch") as packaging:
        task = packaging.pack(spec_of(tmp_path / "scans", works, page_timeout=7.0))
        folder = packaging.write(f"colour-{'0' * 32}_3", task)
    assert folder == tmp_path / "batch" / f"colour-{'0' * 32}" / "3"
    manifest = read_manifest(folder)
    assert (manifest.pages, manifest.task) == (task.pages, f"colour-{'0' * 32}_3")
    assert (manifest.page_timeout, manifest.needs, manifest.code) == (7.0, False, None)
    assert (folder / "out").is_dir()


def test_pages_are_in_memory_one_at_a_time(tmp_path: Path):
    files = {f"{number}.jpg": jpeg(number) + bytes(1_000_000) for number in range(40)}
    works = works_of(tmp_path / "scans", files, ["colour"])
    spec = spec_of(tmp_path / "scans", works)
    files.clear()
    tracemalloc.start()
    packed(tmp_path / "batch", spec)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
