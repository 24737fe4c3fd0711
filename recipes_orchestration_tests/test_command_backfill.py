from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .archive import Archive, make_archive
from .command_runs import Ran, recipes
from .dagster_dev import DagsterDev, free_port, running_dagster

pytestmark = pytest.mark.usefixtures("restored_path")

PAGES = [*(f"letters-1891/p{n}.png" for n in range(4)), "café/x.png"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("backfill") / "project"
    return make_archive(folder, PAGES, batch_size=3)


@pytest.fixture(scope="module")
def dagster(archive: Archive) -> Iterator[DagsterDev]:
    # The home that the commands of `recipes` write to.
    with running_dagster(archive.folder, archive.folder / "dagster_home") as dev:
        yield dev


def launch(archive: Archive, dev: DagsterDev, *arguments: str) -> Ran:
    return recipes(archive, "backfill", "measure", "--url", dev.url, "--json", *arguments)


def counts(step: int) -> dict[str, int]:
    return {"targeted": step, "materialized": step, "failed": 0}


@pytest.mark.slow
def test_one_step_then_one_folder_then_what_is_missing_then_everything(
    archive: Archive, dagster: DagsterDev
):
    assert recipes(archive, "discover").code == 0

    one_step = launch(archive, dagster, "--folder", "letters-1891", "--step", "size")
    assert one_step.code == 0, one_step.err
    assert one_step.document["status"] == "COMPLETED_SUCCESS"
    assert one_step.document["counts"] == {"size": counts(2)}
    assert archive.ran().total() == 4

    folder = launch(archive, dagster, "--folder", "café")
    assert (folder.code, folder.document["counts"]) == (0, {"size": counts(1), "area": counts(1)})
    assert set(archive.ran("area")) == {("area", "café/x.png")}

    archive.draw(["letters-1892/p1.png"])
    recipes(archive, "discover")
    missing = launch(archive, dagster, "--missing-only")
    assert (missing.code, missing.document["batches"]) == (0, 3)
    assert missing.document["counts"] == {"size": counts(1), "area": counts(3)}

    nothing = launch(archive, dagster, "--missing-only")
    assert (nothing.code, nothing.document["backfill"]) == (0, None)

    everything = launch(archive, dagster)
    assert everything.code == 0, everything.err
    assert everything.document["counts"] == {"size": counts(4), "area": counts(4)}
    assert set(archive.ran().values()) == {1}
    assert archive.ran().total() == 12


@pytest.mark.slow
def test_a_backfill_in_which_a_batch_fails_ends_with_1_and_true_counts(
    archive: Archive, dagster: DagsterDev
):
    archive.draw(["bad/1-fails.png", "bad/2-fails.png"])
    recipes(archive, "discover")
    ran = launch(archive, dagster, "--folder", "bad")
    assert ran.code == 1
    assert ran.document["succeeded"] is False
    assert ran.document["counts"]["area"] == {"targeted": 1, "materialized": 0, "failed": 1}


@pytest.mark.slow
def test_a_backfill_may_be_launched_and_left(archive: Archive, dagster: DagsterDev):
    recipes(archive, "discover")
    ran = launch(archive, dagster, "--folder", "letters-1891", "--no-wait")
    assert (ran.code, ran.document["status"]) == (0, "REQUESTED")
    query = "query Q($id: String!) { partitionBackfillOrError(backfillId: $id) { __typename } }"
    found = dagster.graphql(query, {"id": ran.document["backfill"]})
    assert found["partitionBackfillOrError"]["__typename"] == "PartitionBackfill"


@pytest.mark.slow
def test_a_folder_that_dagster_does_not_know_is_told(archive: Archive, dagster: DagsterDev):
    ran = launch(archive, dagster, "--folder", "letters-1900")
    assert ran.code == 2
    assert "recipes discover" in ran.err


@pytest.mark.slow
def test_a_dagster_over_another_project_is_told(tmp_path: Path, dagster: DagsterDev):
    other = make_archive(tmp_path / "other", ["a/1.png"])
    recipe = other.folder / "recipes" / "measure.yaml"
    recipe.write_text(recipe.read_text().replace("recipe: measure", "recipe: weigh"))
    ran = recipes(other, "backfill", "weigh", "--url", dagster.url)
    assert ran.code == 3
    assert "has no asset weigh/size" in ran.err


def test_where_no_dagster_answers_a_sentence_says_what_to_do(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    url = f"http://127.0.0.1:{free_port()}"
    ran = recipes(archive, "backfill", "measure", "--url", url)
    assert ran.code == 3
    assert ran.err == (
        f"No Dagster answers at {url} (Connection refused). Start one with `recipes dev`, or name "
        "the UI's address with --url.\n"
    )


def test_what_answers_but_is_no_dagster_is_told(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png"])

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = recipes(
            archive, "backfill", "measure", "--url", f"http://127.0.0.1:{server.server_port}"
        )
        server.shutdown()
    assert ran.code == 3
    assert "is no Dagster UI" in ran.err


def test_an_address_that_is_none_is_a_wrong_command(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    assert recipes(archive, "backfill", "measure", "--url", "file:///etc/passwd").code == 2
