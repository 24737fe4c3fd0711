"""`recipes held`: the reason, the provider's words, since when, and what a person can do."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recipes_orchestration.engine.remedies import page_remedy
from recipes_orchestration.ledger.tables import holds
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.runner.work import FailureKind

from .archive import Archive, make_archive
from .cloud_archive import make_cloud_archive, run_all
from .cloud_runner import direct
from .command_runs import recipes
from .test_alerts import earlier, send

pytestmark = pytest.mark.usefixtures("restored_path")


def held(archive: Archive, *more: str) -> list[dict[str, Any]]:
    return list(recipes(archive, "held", "--json", *more).document["held"])


def test_a_page_that_a_provider_refused_is_shown_with_its_words_and_since_when(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, "anthropic", error_lines=1, error_message="This image is not a letter.")
    archive = make_cloud_archive(tmp_path, pages=3, limits={"tries": 1})
    with archive.engine() as engine:
        run_all(engine)
        earlier(engine.ledger, holds.c.since, timedelta(days=2))
    (page,) = held(archive)
    assert (page["kind"], page["tries"]) == ("errored", 1)
    assert "This image is not a letter." in page["reason"]
    since = datetime.fromisoformat(page["since"])
    assert timedelta(days=1.9) < datetime.now(UTC) - since < timedelta(days=2.1)
    out = recipes(archive, "held", "letters").out
    assert f"{page['page_id']}  read  errored  {since:%Y-%m-%d %H:%M}" in re.sub(" {2,}", "  ", out)
    assert f"errored: {page['remedy']}" in out
    assert "recipes retry letters" in page["remedy"]
    assert "recipes release PAGE" in page["remedy"]


def test_a_file_that_cannot_be_read_is_to_be_replaced_not_tried_again(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "project", ["a/1.png"])
    (archive.pages / "a" / "broken.png").write_bytes(b"")
    recipes(archive, "run", "measure", "--no-dagster")
    (page,) = held(archive)
    assert (page["page_id"], page["kind"], page["tries"]) == ("a/broken.png", "unreadable", None)
    assert datetime.now(UTC) - datetime.fromisoformat(page["since"]) < timedelta(minutes=5)
    assert page["remedy"].startswith(
        "mend or replace the file, then: recipes discover letters; leave a page out"
    )


def test_each_reason_is_explained_once_however_many_pages_have_it(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "project", ["a/fails1.png", "a/fails2.png", "a/good.png"])
    recipes(archive, "run", "measure", "--no-dagster")
    out = recipes(archive, "held", "measure").out
    assert "2 pages held" in out
    assert out.count("failed: try again with: recipes retry measure") == 1


def test_a_task_that_waits_for_a_person_is_shown_with_what_to_do(tmp_path: Path) -> None:
    archive = make_cloud_archive(tmp_path, pages=1)
    words = "anthropic does not know it any more."
    with archive.engine() as engine:
        engine.ledger.tasks.hold(send(engine, "a/0001"), words)
    document = recipes(archive, "held", "--json").document
    (task,) = document["tasks"]
    assert (task["batch"], task["place"], task["id"]) == ("a/0001", "anthropic", "msgbatch_a/0001")
    assert task["reason"] == words
    assert datetime.now(UTC) - datetime.fromisoformat(task["since"]) < timedelta(minutes=5)
    out = recipes(archive, "held").out
    assert "letters: 1 task held" in out
    assert words in out
    assert "have its place asked again: recipes retry letters" in out
    with archive.engine() as engine:
        engine.ledger.tasks.release("letters")
    assert recipes(archive, "held", "--json").document["tasks"] == []


@pytest.mark.parametrize("kind", FailureKind)
def test_every_reason_has_something_to_do(kind: FailureKind) -> None:
    words = page_remedy(kind.value, "letters", "scans")
    assert "recipes release PAGE" in words
    assert "{" not in words
