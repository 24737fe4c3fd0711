from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from PIL import Image

from recipes_orchestration.demo_archive import FOLDERS, draw_archive
from recipes_orchestration.errors import PageUnreadable
from recipes_orchestration.pages.pdf import count_pages

from .drawn_pages import page_of, read_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    draw_archive(folder)
    return folder


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.*") if path.suffix != ".txt")


def test_four_folders_hold_at_least_sixty_pages_in_few_megabytes(archive: Path) -> None:
    assert sorted(path.name for path in archive.iterdir()) == sorted(FOLDERS)
    files = _images(archive)
    several = [path for path in files if path.suffix in (".pdf", ".tif")]
    assert len(files) - len(several) >= 58
    assert sum(path.stat().st_size for path in archive.rglob("*") if path.is_file()) < 15_000_000


def test_one_pdf_and_one_tiff_have_several_pages(archive: Path) -> None:
    (pdf,) = archive.rglob("*.pdf")
    (tiff,) = archive.rglob("*.tif")
    assert count_pages(pdf.read_bytes()) == 4
    with Image.open(tiff) as opened:
        assert getattr(opened, "n_frames", 1) == 3


def test_one_page_lies_in_two_folders_and_all_others_differ(archive: Path) -> None:
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in _images(archive)]
    assert len(set(hashes)) == len(hashes) - 1


def test_one_file_is_unreadable_and_has_no_true_text(archive: Path) -> None:
    broken = archive / "minutes-1903" / "p099.jpg"
    with pytest.raises(PageUnreadable):
        _ = page_of(broken.read_bytes()).image
    assert not broken.with_name("p099.jpg.gt.txt").exists()


def test_the_same_seed_draws_the_same_and_another_seed_another_archive(
    archive: Path, tmp_path: Path
) -> None:
    draw_archive(tmp_path / "again")
    draw_archive(tmp_path / "other", seed=8)
    # A PDF carries the time at which it was made.
    for path in (path for path in _images(archive) if path.suffix != ".pdf"):
        place = path.relative_to(archive)
        assert (tmp_path / "again" / place).read_bytes() == path.read_bytes()
        assert (tmp_path / "other" / place).read_bytes() != path.read_bytes()


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("letters-1891/p1.jpg", None),
        ("letters-1891/p2.jpg", None),
        ("letters-1892/bundle.pdf", 2),
        ("minutes-1903/p004.jpg", None),
        ("ledgers-1910/leaf 3.png", None),
        ("ledgers-1910/index.tif", 1),
    ],
)
def test_both_styles_can_be_read(archive: Path, name: str, frame: int | None) -> None:
    from .test_read_quality import read_quality

    path = archive / name
    part = "" if frame is None else f"#{frame + 1:04}"
    true = read_quality.tidy(path.with_name(f"{path.name}{part}.gt.txt").read_text("utf-8"))
    read = read_page(page_of(path.read_bytes(), file=name, frame=frame))["text"]
    assert read_quality.distance(true, read_quality.tidy(read)) < 0.05 * len(true)
