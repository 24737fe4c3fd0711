from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3
import fsspec
import pytest
from moto.server import ThreadedMotoServer

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.engine.look import look

from .archive import Archive, find_pages, make_archive
from .test_engine import run

pytestmark = pytest.mark.usefixtures("restored_path")

NAMES = ["a/p1.png", "a/p2.png", "b/p1.png"]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return make_archive(tmp_path / "project", NAMES)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"scans-{uuid.uuid4().hex[:8]}"
    boto3.client("s3").create_bucket(Bucket=name)
    yield name
    server.stop()


def moved(archive: Archive, root: str, library: str) -> None:
    """Puts the archive's pages under another root and its library elsewhere."""
    filesystem, path = fsspec.url_to_fs(root)
    for name in NAMES:
        filesystem.pipe_file(f"{path}/{name}", (archive.pages / name).read_bytes())
    project = archive.folder / "project.yaml"
    text = project.read_text().replace("root: pages", f'root: "{root}"')
    project.write_text(f'{text}library: "{library}"\n')


def test_a_recipe_runs_over_pages_and_library_in_object_storage(archive: Archive, bucket: str):
    moved(archive, f"s3://{bucket}/pages", f"s3://{bucket}/library")
    with open_engine(archive.project()) as engine:
        assert sorted(find_pages(engine).batches) == ["a/0001", "b/0001"]
        run(engine, "a/0001")
        run(engine, "b/0001")
        assert look(engine, engine.project.recipe("measure"), "a/0001").steps["area"].landed == 2
    with open_engine(archive.project()) as again:
        before = archive.ran()
        run(again, "a/0001")
        assert archive.ran() == before


def test_a_recipe_runs_over_pages_in_memory(archive: Archive):
    moved(archive, f"memory://{uuid.uuid4().hex}", "library")
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        assert run(engine, "a/0001").steps["area"].landed == 2


def test_a_file_that_changed_since_it_was_discovered_does_not_land_under_the_old_key(
    archive: Archive,
):
    with open_engine(archive.project()) as engine:
        find_pages(engine)
        archive.draw(["a/p1.png"], shade=1)
        view = run(engine, "a/0001")
        assert view.steps["area"].landed == 1
        assert "has changed since it was discovered" in view.steps["size"].held[0].words
        find_pages(engine)
        assert run(engine, "a/0001").steps["area"].landed == 2
