"""Batch folders in a bucket, by the real clients: huggingface_hub over HTTP, hf_xet on a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes_orchestration.errors import Refused, Unreachable
from recipes_orchestration.places.hf_jobs.hub import Hub
from recipes_orchestration.places.hf_jobs.orders import HfRules, Machine, TaskPlace, order_of
from recipes_orchestration.places.hf_jobs.shelves import MOUNT, BucketShelf
from recipes_orchestration.places.hf_jobs.store import Store

from .bucket_hub import BucketHub, running_bucket_hub

FILES = {
    "lines-1/0/manifest.json": b"{}" * 5000,
    "pages/one.jpg": b"\xff\xd8 one" * 5000,
    "pages/two.jpg": b"\xff\xd8 two" * 5000,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "root/letters" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "root"


@pytest.fixture
def bucket(root: Path, tmp_path: Path) -> Iterator[BucketHub]:
    with running_bucket_hub(root, tmp_path / "xet") as running:
        yield running


@pytest.fixture
def store(bucket: BucketHub) -> Store:
    return Store(BucketShelf(a_hub(bucket), "rehearsal/pages"), "archive")


def a_hub(bucket: BucketHub) -> Hub:
    return Hub("rehearsal", "hf_rehearsal", bucket.url)


def send(store: Store, root: Path) -> int:
    return store.send(root, "letters", FILES)


def test_a_batch_folder_is_sent_as_it_is(bucket: BucketHub, store: Store, root: Path):
    assert send(store, root) == 3
    assert {path: size for path, (_, size) in bucket.files.items()} == {
        f"archive/letters/{name}": len(data) for name, data in FILES.items()
    }


def test_what_was_sent_is_not_sent_again(bucket: BucketHub, store: Store, root: Path):
    send(store, root)
    assert send(store, root) == 0
    assert len(bucket.added) == 3


def test_a_file_that_changed_is_sent_again(bucket: BucketHub, store: Store, root: Path):
    send(store, root)
    (root / "letters/pages/one.jpg").write_bytes(b"\xff\xd8 ONE" * 5000)
    assert send(store, root) == 1
    assert bucket.added[-1] == "archive/letters/pages/one.jpg"


def test_a_file_that_was_lost_without_a_word_is_sent_again(
    bucket: BucketHub, store: Store, root: Path
):
    bucket.loses.append("two.jpg")
    assert send(store, root) == 4
    assert len(bucket.files) == 3


def test_a_file_that_the_bucket_did_not_take_is_sent_again(
    bucket: BucketHub, store: Store, root: Path
):
    bucket.fails.append("two.jpg")
    assert send(store, root) == 4
    assert len(bucket.files) == 3


def test_a_file_that_is_always_lost_is_said(bucket: BucketHub, store: Store, root: Path):
    bucket.loses += ["two.jpg"] * 5
    with pytest.raises(Unreachable, match=r"letters/pages/two\.jpg"):
        send(store, root)


def test_pages_do_not_go_where_everybody_can_read_them(bucket: BucketHub, store: Store, root: Path):
    bucket.private = False
    with pytest.raises(Refused, match="can be read by everybody"):
        send(store, root)
    assert bucket.files == {}


def test_a_bucket_that_is_there_is_used(bucket: BucketHub, store: Store, root: Path):
    bucket.made = True
    assert send(store, root) == 3


def test_files_come_back_as_they_are(store: Store, root: Path, tmp_path: Path):
    send(store, root)
    fetched = store.fetch("letters/pages", ["one.jpg"], tmp_path / "back", 1_000_000)
    assert fetched.files["one.jpg"].read_bytes() == FILES["pages/one.jpg"]
    assert fetched.strange == 1


def test_nothing_is_left_of_a_batch_whose_tasks_have_landed(
    bucket: BucketHub, store: Store, root: Path
):
    send(store, root)
    store.remove("letters", "lines-1/0")
    assert bucket.files == {}


def test_a_job_has_its_batch_folder_mounted_and_no_token(bucket: BucketHub, store: Store):
    order = order_of(
        "lines-1",
        "archive",
        TaskPlace("letters", "lines-1/0"),
        Machine("t4-small", 1000),
        HfRules("python:3.12"),
        store.reach("letters"),
        a_hub(bucket),
    )
    (volume,) = order.volumes
    assert volume.to_dict() == {
        "type": "bucket",
        "source": "rehearsal/pages",
        "mountPath": MOUNT,
        "readOnly": False,
        "path": "archive/letters",
    }
    assert f"--mount {MOUNT} --task lines-1/0" in order.command[-1]
    assert order.secrets == {}
