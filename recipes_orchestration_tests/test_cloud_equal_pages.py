"""Page batches that have equal pages: asked once, and waited for without a process."""

from __future__ import annotations

import shutil
from pathlib import Path

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.rehearsal import Rehearsal, Script

from .archive import find_pages
from .cloud_archive import CloudArchive, advance_once, make_cloud_archive, values_of


def two_batches_with_one_equal_page(folder: Path) -> CloudArchive:
    archive = make_cloud_archive(folder, pages=2)
    archive.draw(["b/0.png"])
    shutil.copyfile(archive.pages / "a" / "0000.png", archive.pages / "b" / "1.png")
    with archive.engine() as engine:
        find_pages(engine)
    return archive


def send_both(engine: Engine) -> None:
    for batch in ("a/0001", "b/0001"):
        assert advance_once(engine, batch=batch).open == 1


def test_a_run_that_waits_for_an_equal_page_elsewhere_can_be_deferred(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    rehearsal.script("anthropic", Script(never_ends=True))
    archive = two_batches_with_one_equal_page(tmp_path)
    with archive.engine() as engine:
        send_both(engine)
        seen = advance_once(engine, batch="b/0001")
        assert seen.goes_on_without_us
        assert {task.batch for task in seen.remote} == {"a/0001", "b/0001"}


def test_an_equal_page_lands_when_the_other_batch_has(tmp_path: Path, rehearsal: Rehearsal) -> None:
    rehearsal.script("anthropic", Script(never_ends=True))
    archive = two_batches_with_one_equal_page(tmp_path)
    with archive.engine() as engine:
        send_both(engine)
        rehearsal.finish("anthropic")
        for batch in ("a/0001", "b/0001", "b/0001"):
            seen = advance_once(engine, batch=batch)
        assert seen.at_rest
        assert values_of(engine, batch="b/0001")["b/1.png"] == values_of(engine)["a/0000.png"]
    assert set(rehearsal.counts("anthropic")["requests"].values()) == {1}
