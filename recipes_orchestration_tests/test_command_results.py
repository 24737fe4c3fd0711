from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .archive import Archive, make_archive
from .command_runs import recipes

pytestmark = pytest.mark.usefixtures("restored_path")


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Twelve good pages in two folders, one that fails and one that cannot be read."""
    names = [*(f"a/p{n}.png" for n in range(6)), *(f"a/b/p{n}.png" for n in range(4))]
    archive = make_archive(
        tmp_path_factory.mktemp("results") / "project", [*names, "c/x.png", "c/y.png"], batch_size=4
    )
    archive.draw(["c/fails.png"])
    (archive.pages / "c" / "broken.png").write_bytes(b"")
    assert recipes(archive, "run", "measure", "--no-dagster").code == 1
    return archive


def test_status_is_a_table_of_folders_and_steps(landed: Archive):
    ran = recipes(landed, "status", "measure")
    rows = [line.split() for line in ran.out.split("\n") if line]
    assert ran.code == 0
    assert ["a/b", "1", "4/4", "4/4"] in rows
    assert ["a", "2", "6/6", "6/6"] in rows
    assert ["c", "1", "3/4,", "1", "held", "2/4,", "2", "held"] in rows
    assert ["total", "4", "13/14,", "1", "held", "12/14,", "2", "held"] in rows


def test_status_of_one_folder_counts_those_below_it(landed: Archive):
    document = recipes(landed, "status", "measure", "--folder", "a", "--json").document
    assert document["recipes"][0]["totals"]["size"] == {
        "pages": 10,
        "landed": 10,
        "held": 0,
        "open": 0,
        "todo": 0,
        "batches": 3,
        "complete": 3,
    }


def test_a_folder_that_is_not_there_is_told_with_one_that_is(landed: Archive):
    ran = recipes(landed, "status", "measure", "--folder", "a/c")
    assert ran.code == 2
    assert 'no pages in a folder a/c. Did you mean "a/b"?' in ran.err


def test_held_names_each_page_once_with_its_reason(landed: Archive):
    document = recipes(landed, "held", "--json").document
    assert [(each["page_id"], each["step"], each["reason"]) for each in document["held"]] == [
        ("c/broken.png", "size", document["held"][0]["reason"]),
        ("c/fails.png", "area", "ValueError: this page has no area"),
    ]
    assert "empty" in document["held"][0]["reason"]


def test_show_tells_batch_hash_state_value_and_tasks(landed: Archive):
    page = recipes(landed, "show", "a/p1.png", "--json").document["pages"][0]
    steps = page["recipes"][0]["steps"]
    assert (page["batch"], page["position"], len(page["sha256"])) == ("a/0001", 1, 64)
    assert [(step["step"], step["state"]) for step in steps] == [
        ("size", "landed"),
        ("area", "landed"),
    ]
    assert steps[0]["value"] == {"width": 120, "height": 60}
    assert steps[0]["task"] == page["tasks"][0]["name"]
    assert page["tasks"][0]["state"] == "landed"


def test_show_says_why_a_page_is_held_and_how_often_it_failed(landed: Archive):
    out = recipes(landed, "show", "c/fails.png").out
    assert "area: held" in out
    assert "failed 2 times, at last: ValueError: this page has no area" in out


def test_show_of_an_unknown_page_names_a_near_one(landed: Archive):
    ran = recipes(landed, "show", "a/p1.pmg")
    assert (ran.code, ran.out) == (2, "")
    assert 'Did you mean "a/p1.png"?' in ran.err


def test_a_page_whose_name_is_no_utf8_is_shown_safely_and_found_by_its_bytes(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/x.png"])
    good = (archive.pages / "a" / "x.png").read_bytes()
    name = b"a/\x1b[31mcaf\xe9.png"
    (Path(os.fsdecode(os.fsencode(archive.pages) + b"/" + name))).write_bytes(good[:60])
    recipes(archive, "run", "measure", "--no-dagster")
    out = recipes(archive, "held").out
    assert "\x1b" not in out
    assert "a/\\x1b[31mcaf\\xe9.png" in out
    shown = recipes(archive, "show", os.fsdecode(name), "--json").document
    assert shown["pages"][0]["recipes"][0]["steps"][0]["state"] == "held"


def test_export_writes_what_landed_and_counts_what_is_missing(landed: Archive, tmp_path: Path):
    document = recipes(
        landed,
        *("export", "measure", "--step", "area", "--format", "jsonl"),
        *("--out", str(tmp_path), "--json"),
    ).document
    rows = [
        json.loads(line) for line in Path(document["out"]).read_bytes().split(b"\n") if line.strip()
    ]
    assert (document["written"], document["missing"]) == (12, 2)
    assert sorted(row["page_id"] for row in rows)[:2] == ["a/b/p0.png", "a/b/p1.png"]


def test_export_of_one_folder_as_text_has_a_file_a_page(landed: Archive, tmp_path: Path):
    ran = recipes(
        landed,
        *("export", "measure", "--step", "area", "--folder", "a/b", "--out", str(tmp_path / "out")),
    )
    assert ran.code == 0
    files = sorted(
        file.relative_to(tmp_path / "out").as_posix()
        for file in (tmp_path / "out").rglob("*")
        if file.is_file()
    )
    assert files == [f"a/b/p{n}.png.txt" for n in range(4)]
    assert (tmp_path / "out/a/b/p2.png.txt").read_text() == "text of a/b/p2.png\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "exel", "--step", "area", "--out", "x"], "no format exel"),
        (["--format", "csv", "--step", "aera", "--out", "x"], 'Did you mean "area"?'),
        (["--format", "csv", "--step", "area"], "--out DIR_OR_URL"),
        (["--format", "csv", "--out", "x"], "--step STEP"),
    ],
)
def test_an_export_that_cannot_be_is_told_before_anything_is_written(
    landed: Archive, arguments: list[str], words: str
):
    ran = recipes(landed, "export", "measure", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_retry_lets_the_next_run_try_a_held_page_again(tmp_path: Path):
    archive = make_archive(tmp_path / "project", ["a/x.png", "a/fails.png", "b/fails.png"])
    (archive.pages / "a" / "broken.png").write_bytes(b"")
    recipes(archive, "run", "measure", "--no-dagster")
    cleared = recipes(archive, "retry", "measure", "--folder", "a", "--json").document
    assert cleared == {"recipe": "measure", "cleared": 1, "unreadable": 1}
    before = archive.ran("area")
    recipes(archive, "run", "measure", "--no-dagster")
    again = archive.ran("area") - before
    assert again == {("area", "a/fails.png"): 2}


def test_retry_says_that_only_a_mended_file_helps(landed: Archive):
    out = recipes(landed, "retry", "measure", "--page", "c/broken.png").out
    assert "0 holds cleared" in out
    assert "recipes discover letters" in out


def test_plan_counts_what_is_to_do_what_is_reused_and_guesses_the_time(tmp_path: Path):
    archive = make_archive(tmp_path / "project", [f"a/{n}.png" for n in range(4)])
    recipes(archive, "discover", "--no-dagster")
    assert "is not known" in recipes(archive, "plan", "measure").out
    recipes(archive, "run", "measure", "--no-dagster")
    assert "Nothing to do." in recipes(archive, "plan", "measure").out
    archive.draw(["b/new.png"])
    for name in ("b/copy.png", "c/copy.png"):
        (archive.pages / name).parent.mkdir(exist_ok=True)
        (archive.pages / name).write_bytes((archive.pages / "a/1.png").read_bytes())
    (archive.pages / "c/new.png").write_bytes((archive.pages / "b/new.png").read_bytes())
    recipes(archive, "discover", "--no-dagster")
    stage = recipes(archive, "plan", "measure", "--json").document["stages"][0]
    assert (stage["batches"], stage["pages"]) == (2, 4)
    size = stage["steps"]["size"]
    assert {name: size[name] for name in ("pages", "landed", "todo", "reused")} == {
        "pages": 8,
        "landed": 4,
        "todo": 4,
        "reused": 3,
    }
    assert stage["estimated_seconds"] == pytest.approx(
        (size["seconds_per_page"] + stage["steps"]["area"]["seconds_per_page"]) / stage["workers"]
    )
    assert archive.ran()["size", "b/new.png"] == 0
