"""Killed at any moment while it packs, and hostile pages: nothing half-written is believed."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from recipes_orchestration.places.task_folders import page_encoding
from recipes_orchestration.places.task_folders.packaging import Packaging
from recipes_orchestration.places.task_folders.page_files import PageFile
from recipes_orchestration.runner.task_folder import read_manifest
from recipes_orchestration.runner.work import Failure

from .packed_work import COLOUR, jpeg, spec_of, tiff, works_of

NAME = f"colour-{'0' * 32}_0"
PAGES = 400
# Packs as often as it can, so that a kill comes anywhere in it.
PACKING = f"""
import pickle, shutil, sys
from pathlib import Path
from recipes_orchestration.places.packaging import Packaging
from recipes_orchestration.places.page_files import PageFile
spec = pickle.loads(Path(sys.argv[1]).read_bytes())
batch = Path(sys.argv[2])
print("begins", flush=True)
while True:
    with Packaging(batch) as packaging:
        packaging.write("{NAME}", packaging.pack(spec))
    if len(sys.argv) > 3:
        break
    shutil.rmtree(batch)
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_folder_that_is_completed(tmp_path: Path):
    files = {f"{number}.jpg": jpeg(number % 250, (60, 40 + number)) for number in range(PAGES)}
    works = works_of(tmp_path / "scans", files, ["colour"])
    spec = replace(
        spec_of(tmp_path / "scans", [replace(work, needs={"before": 1}) for work in works]),
        steps=(replace(COLOUR, needs=("before",)),),
    )
    (tmp_path / "spec").write_bytes(pickle.dumps(spec))
    batch = tmp_path / "batch"
    for delay in (0.0, 0.01, 0.025, 0.04, 0.07, 0.1):
        command = [sys.executable, "-c", PACKING, str(tmp_path / "spec"), str(batch)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        with Packaging(batch) as packaging:
            folder = packaging.write(NAME, packaging.pack(spec))
        assert_whole(batch, folder)
        subprocess.run(["rm", "-rf", str(batch)], check=True)


def assert_whole(batch: Path, folder: Path) -> None:
    manifest = read_manifest(folder)
    assert len(manifest.pages) == PAGES
    assert (folder / "needs.jsonl").read_bytes().count(b"\n") == PAGES
    for page in manifest.pages:
        data = (folder / page.file).read_bytes()
        assert hashlib.sha256(data).hexdigest() == page.file_sha256
    assert len(os.listdir(batch / "pages")) == len({page.file for page in manifest.pages})
    assert os.listdir(batch / "parts") == []
    assert sorted(os.listdir(folder)) == ["manifest.json", "needs.jsonl", "out"]


def test_a_torn_line_of_the_index_is_written_again(tmp_path: Path):
    works = works_of(tmp_path / "scans", {"a.jpg": jpeg(1), "b.jpg": jpeg(2)}, ["colour"])
    spec = spec_of(tmp_path / "scans", works)
    with Packaging(tmp_path / "batch") as packaging:
        first = packaging.pack(spec)
    index = tmp_path / "batch" / "pages.jsonl"
    os.truncate(index, index.stat().st_size - 20)
    with Packaging(tmp_path / "batch") as packaging:
        assert packaging.pack(spec) == first
    lines = index.read_bytes().split(b"\n")
    assert len([line for line in lines if line]) == 3


@dataclass(frozen=True)
class Broken:
    """What the workers run in place of the decoding; it is pickled, as they do not see patches."""

    hangs: bool

    def __call__(self, encoding: page_encoding.Encoding) -> PageFile | Failure:
        if encoding.work.frame == 1:
            Path(encoding.part).write_bytes(b"half of a pic")
            time.sleep(60 if self.hangs else 0)
            os._exit(7)
        return ENCODE(encoding)


ENCODE = page_encoding._encode


@pytest.mark.parametrize(("hangs", "kind"), [(False, "died"), (True, "timeout")])
def test_a_page_that_ends_or_holds_its_decoder_is_one_failed_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool, kind: str
):
    monkeypatch.setattr(page_encoding, "_encode", Broken(hangs))
    works = works_of(tmp_path / "scans", {"a.tif": tiff(1, 2, 3, 4)}, ["colour"])
    with Packaging(tmp_path / "batch", workers=1) as packaging:
        task = packaging.pack(spec_of(tmp_path / "scans", works, page_timeout=2.0))
    assert [(each.page_id, each.failure.kind) for each in task.decided if each.failure] == [
        ("a.tif#0002", kind)
    ]
    assert task.page_ids == ("a.tif#0001", "a.tif#0003", "a.tif#0004")
    assert len(os.listdir(tmp_path / "batch" / "pages")) == 3
