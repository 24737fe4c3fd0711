"""Walking and reading sources on a disk, in memory and on S3."""

from __future__ import annotations

import itertools
import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from recipes_orchestration.errors import PageUnreadable, SourceError
from recipes_orchestration.pages.naming import shown
from recipes_orchestration.pages.source import FolderListing, Source

NUMBERS = itertools.count(1)
FILES = {
    "top.jpg": b"top",
    "letters/p10.jpg": b"ten",
    "letters/p2.jpg": b"two",
    "letters/p2.gt.txt": b"text beside the page",
    "letters/.hidden.jpg": b"hidden",
    "letters/@eaDir/p2.jpg/thumb.jpg": b"litter",
    "letters/box 10/é.tif": b"e",
    "letters/box 2/a#b?c.jpg": b"abc",
    "letters/box 2/deep/er/p.PDF": b"deep",
    "empty/mets.xml": b"<mets/>",
}
FOLDERS = {
    ".": ["top.jpg"],
    "empty": [],
    "letters": ["letters/p2.jpg", "letters/p10.jpg"],
    "letters/box 2": ["letters/box 2/a#b?c.jpg"],
    "letters/box 2/deep": [],
    "letters/box 2/deep/er": ["letters/box 2/deep/er/p.PDF"],
    "letters/box 10": ["letters/box 10/é.tif"],
}


@pytest.fixture(scope="module")
def s3_options() -> Iterator[dict[str, Any]]:
    pytest.importorskip("s3fs", reason="the extra aws is not installed")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "key": "testing",
        "secret": "testing",
        "client_kwargs": {"endpoint_url": f"http://{host}:{port}"},
    }
    server.stop()


@pytest.fixture(params=["local", "file", "memory", "s3"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    match request.param:
        case "local":
            made = Source("here", str(tmp_path / "scans"))
        case "file":
            made = Source("here", f"file://{tmp_path}/scans")
        case "memory":
            made = Source("here", f"memory://scans-{next(NUMBERS)}")
        case _:
            options = request.getfixturevalue("s3_options")
            bucket = f"scans-{next(NUMBERS)}"
            fsspec.filesystem("s3", **options).mkdir(bucket)
            made = Source("here", f"s3://{bucket}/some/where", options)
    for file, data in FILES.items():
        put(made, file, data)
    return made


def put(source: Source, file: str, data: bytes) -> None:
    store, root = fsspec.url_to_fs(source.root, **source.storage_options)
    path = f"{root}/{file}"
    if source.root.startswith("s3://"):
        store.pipe_file(path, data)
        return
    store.makedirs(path.rpartition("/")[0], exist_ok=True)
    with store.open(path, "wb") as out:
        out.write(data)


def files_by_folder(walk: Iterator[FolderListing]) -> dict[str, list[str]]:
    return {listing.folder: [entry.file for entry in listing.files] for listing in walk}


def test_a_walk_gives_folders_and_pages_in_natural_order(source: Source) -> None:
    found = files_by_folder(source.walk())
    assert found == FOLDERS
    assert list(found) == list(FOLDERS)


def test_entries_carry_folder_and_size(source: Source) -> None:
    entries = [entry for listing in source.walk() for entry in listing.files]
    assert {entry.file: entry.size for entry in entries} == {
        file: len(FILES[file]) for files in FOLDERS.values() for file in files
    }
    assert {entry.folder for entry in entries} == {f for f, files in FOLDERS.items() if files}
    assert all(entry.problem is None for entry in entries)


def test_what_is_passed_over_is_counted(source: Source) -> None:
    ignored = {listing.folder: listing.ignored for listing in source.walk()}
    assert ignored["letters"] == 3
    assert ignored["empty"] == 1
    assert ignored["letters/box 2"] == 0


def test_hidden_files_are_taken_when_asked_for_but_litter_is_not(source: Source) -> None:
    asked = Source(source.name, source.root, source.storage_options, hidden=True)
    found = files_by_folder(asked.walk())
    assert found["letters"] == ["letters/.hidden.jpg", "letters/p2.jpg", "letters/p10.jpg"]
    assert not any("@eaDir" in folder for folder in found)


@pytest.mark.parametrize("folder", [*FOLDERS, "gone", "letters/box 3", "zzz"])
def test_a_walk_goes_on_after_any_folder_there_or_gone(source: Source, folder: str) -> None:
    whole = list(files_by_folder(source.walk()))
    rest = list(files_by_folder(source.walk(after=folder)))
    expected = {
        "gone": ["letters", *whole[3:]],
        "letters/box 3": ["letters/box 10"],
        "zzz": [],
    }
    assert rest == expected.get(folder, whole[whole.index(folder) + 1 :] if folder in whole else [])


def test_a_stamp_stays_until_the_file_changes(source: Source) -> None:
    def stamps() -> dict[str, str]:
        return {e.file: e.stamp for listing in source.walk() for e in listing.files}

    before = stamps()
    assert stamps() == before
    time.sleep(0.02)
    put(source, "top.jpg", b"TOP")
    after = stamps()
    assert after["top.jpg"] != before["top.jpg"]
    assert {**after, "top.jpg": ""} == {**before, "top.jpg": ""}


def test_every_file_that_is_found_can_be_read(source: Source) -> None:
    for listing in source.walk():
        for entry in listing.files:
            assert source.read(entry.file) == FILES[entry.file]


def test_a_reader_survives_being_pickled(source: Source) -> None:
    source.read("top.jpg")
    reader = pickle.loads(pickle.dumps(source.reader))
    assert "store" not in reader.__dict__
    assert reader.read("letters/box 10/é.tif") == b"e"
    assert pickle.loads(pickle.dumps(source)) == source


def test_a_file_over_the_bound_is_refused(source: Source) -> None:
    assert source.read("letters/p10.jpg", 3) == b"ten"
    with pytest.raises(PageUnreadable, match=r"3 bytes, more than the 2"):
        source.read("letters/p10.jpg", 2)


def test_a_file_that_is_gone_is_said_to_be(source: Source) -> None:
    with pytest.raises(SourceError, match="not there"):
        source.read("letters/p3.jpg")


def test_no_name_leads_out_of_the_source(source: Source) -> None:
    with pytest.raises(SourceError, match="leads out"):
        source.read("../secret.jpg")


def test_a_file_written_after_a_walk_is_seen_by_the_next(source: Source) -> None:
    list(source.walk())
    put(source, "letters/p3.jpg", b"three")
    assert "letters/p3.jpg" in files_by_folder(source.walk())["letters"]


@pytest.mark.parametrize("kind", ["local", "memory", "s3"])
def test_a_root_that_is_not_there_is_an_error(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    options = request.getfixturevalue("s3_options") if kind == "s3" else {}
    root = {
        "local": str(tmp_path / "nowhere"),
        "memory": "memory://nowhere",
        "s3": "s3://no-such-bucket/nowhere",
    }[kind]
    with pytest.raises(SourceError, match="does not exist"):
        next(Source("x", root, options).walk())


def test_a_store_that_does_not_answer_is_an_error() -> None:
    pytest.importorskip("s3fs", reason="the extra aws is not installed")
    options = {
        "key": "testing",
        "secret": "testing",
        "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"},
        "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1},
    }
    source = Source("x", "s3://bucket/pages", options)
    with pytest.raises(SourceError, match="could not be listed"):
        next(source.walk())
    with pytest.raises(SourceError, match="could not be fetched") as caught:
        source.read("a.jpg")
    assert "testing" not in str(caught.value)


def test_doubled_slashes_of_object_stores_end(s3_options: dict[str, Any]) -> None:
    bucket = f"scans-{next(NUMBERS)}"
    store = fsspec.filesystem("s3", **s3_options)
    store.mkdir(bucket)
    for key in ("a//b.jpg", "a/c.jpg", "a/", "d.jpg/e.jpg"):
        store.call_s3("put_object", Bucket=bucket, Key=key, Body=b"x")
    found = files_by_folder(Source("x", f"s3://{bucket}", s3_options).walk())
    assert found == {".": [], "a": ["a/c.jpg"], "d.jpg": ["d.jpg/e.jpg"]}


def test_links_pipes_and_folders_named_like_pages(tmp_path: Path) -> None:
    (tmp_path / "a" / "named.jpg").mkdir(parents=True)
    (tmp_path / "a" / "page.jpg").write_bytes(b"page")
    (tmp_path / "a" / "up").symlink_to("../..")
    (tmp_path / "a" / "up.jpg").symlink_to("..")
    (tmp_path / "alias.jpg").symlink_to("a/page.jpg")
    (tmp_path / "dangling.jpg").symlink_to("gone.jpg")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    source = Source("x", str(tmp_path))
    listings = {listing.folder: listing for listing in source.walk()}
    assert list(listings) == [".", "a", "a/named.jpg"]
    assert [entry.file for entry in listings["a"].files] == ["a/page.jpg"]
    assert listings["a"].ignored == 2
    problems = {entry.file: entry.problem or "" for entry in listings["."].files}
    assert list(problems) == ["alias.jpg", "dangling.jpg", "loop.jpg"]
    assert not problems["alias.jpg"]
    assert "not there" in problems["dangling.jpg"]
    assert "back to itself" in problems["loop.jpg"]
    assert listings["."].ignored == 1
    assert source.read("alias.jpg") == b"page"
    with pytest.raises(PageUnreadable, match="not a regular file"):
        source.read("pipe.jpg")


def test_a_name_that_is_not_utf8_is_found_and_opened_by_its_bytes(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(raw)
    with open(raw + b"/b\xff.jpg", "wb") as out:
        out.write(b"page")
    source = Source("x", str(tmp_path))
    listing = list(source.walk())[1]
    assert shown(listing.files[0].file) == "caf\\xe9/b\\xff.jpg"
    assert source.read(listing.files[0].file) == b"page"
    assert list(source.walk(after=listing.folder)) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may list and read anything")
def test_what_may_not_be_listed_or_read_has_its_reason(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    (tmp_path / "locked.jpg").write_bytes(b"x")
    (tmp_path / "locked.jpg").chmod(0)
    source = Source("x", str(tmp_path))
    try:
        listing = list(source.walk())[1]
        assert "check its permissions" in (listing.problem or "")
        with pytest.raises(SourceError, match="check its permissions"):
            source.read("locked.jpg")
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_a_folder_that_cannot_be_listed_does_not_end_the_walk(tmp_path: Path) -> None:
    # A path longer than the system opens: made from inside, as it cannot be named from outside.
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "p.jpg").write_bytes(b"x")
    here = os.open(tmp_path, os.O_RDONLY)
    for depth in range(20):
        os.mkdir("a" * 250 if depth else "a", dir_fd=here)
        deeper = os.open("a" * 250 if depth else "a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    listings = list(Source("x", str(tmp_path)).walk())
    assert listings[-1].folder == "b"
    assert "too deep" in (listings[-2].problem or "")
    assert not listings[-2].empty
