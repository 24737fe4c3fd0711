"""What goes from a batch folder with a task, and what stays for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.places.task_folders.batch_folder import remove_task


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """A batch folder with one task that has nobody packing beside it."""
    folder = tmp_path / "batch"
    for file in ("pages/1.png", "code/0f/steps.py", "size-0f/0/out/results.jsonl", "pages.jsonl"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    (folder / "parts").mkdir()
    return folder


def test_the_batch_folder_goes_with_its_last_task(batch: Path):
    remove_task(batch, "size-0f/0")
    assert not batch.exists()


@pytest.mark.parametrize("other", ["size-0f/1", "size-1a/0"])
def test_pages_stay_as_long_as_another_task_may_need_them(batch: Path, other: str):
    (batch / other).mkdir(parents=True)
    remove_task(batch, "size-0f/0")
    assert not (batch / "size-0f" / "0").exists()
    assert (batch / other).is_dir()
    assert (batch / "pages" / "1.png").exists()
    remove_task(batch, other)
    assert not batch.exists()


def test_pages_stay_while_somebody_packs(batch: Path):
    (batch / "parts" / "of-a-process").mkdir()
    remove_task(batch, "size-0f/0")
    assert (batch / "pages" / "1.png").exists()
    assert not (batch / "size-0f").exists()


def test_a_task_that_is_gone_is_no_error(tmp_path: Path):
    remove_task(tmp_path / "never", "size-0f/0")
