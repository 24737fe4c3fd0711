"""`recipes pause`, `resume`, `stop`, `now` and `release`, and what runs say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import run_stage
from recipes_orchestration.engine.controls import scope_of, stop
from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.errors import HeldBack
from recipes_orchestration.rehearsal import Rehearsal
from recipes_orchestration.stages import stages_of

from .archive import find_pages, make_archive
from .cloud_archive import advance_once, run_all
from .cloud_landing import cloud, direct, rows_of, sizes
from .command_runs import recipes

pytestmark = pytest.mark.usefixtures("restored_path")

PLACE = "anthropic"
BATCHES = [f"a/{number:04}" for number in range(1, 7)]


def test_a_stop_of_six_open_batches_lands_what_was_answered_and_only_the_rest_is_sent_again(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    direct(rehearsal, PLACE, never_ends=True, answered_before_cancel=2, cancel_seconds=0.3)
    archive = cloud(tmp_path, rehearsal, PLACE, 18, batch_size=3)
    with archive.engine() as engine:
        assert [advance_once(engine, batch=batch).open for batch in BATCHES] == [1] * 6
    stopped = recipes(archive, "stop", "letters", "--reason", "the wrong prompt")
    assert stopped.code == 0
    assert stopped.out == "Stopped: 12 of 18 pages read at anthropic; nothing read is lost.\n"
    states = [batch["state"] for batch in rehearsal.counts(PLACE)["batches"]]
    assert states == ["cancelled"] * 6
    with archive.engine() as engine:
        assert engine.ledger.tasks.open() == []
        booked = sum(booking.landed_usd for booking in engine.ledger.bookings.all())
        rows = [row for batch in BATCHES for row in rows_of(engine, batch=batch)]
        assert len(rows) == 12
        assert booked == sum(row["cost_usd"] for row in rows)
    ran = recipes(archive, "run", "letters", "--no-dagster", "--no-discover")
    assert ran.code == 1
    assert "Stopped: 2 of 3 pages read at anthropic; nothing read is lost" in ran.err
    status = recipes(archive, "status", "letters")
    assert "Stopped: 12 of 18 pages read at anthropic" in status.out
    assert "the wrong prompt. To go on, run: recipes resume letters" in status.out
    assert sizes(rehearsal, PLACE) == [3] * 6
    assert "letters may go on." in recipes(archive, "resume", "letters").out
    direct(rehearsal, PLACE)
    assert recipes(archive, "run", "letters", "--no-dagster", "--no-discover").code == 0
    assert sizes(rehearsal, PLACE) == [3] * 6 + [1] * 6


def test_a_run_goes_on_with_the_folders_that_are_not_paused(tmp_path: Path) -> None:
    archive = make_archive(tmp_path, ["a/1.png", "b/1.png"])
    with open_engine(archive.project()) as engine:
        find_pages(engine)
    paused = recipes(archive, "pause", "measure", "--folder", "a", "--json").document
    assert (paused["folder"], paused["asked_to_end"]) == ("a", 0)
    ran = recipes(archive, "run", "measure", "--no-dagster")
    assert ran.code == 1
    assert "a/0001: folder a of measure was paused" in ran.err
    assert ran.err.count("b/0001: 2 results landed") == 1
    assert archive.ran("size") == {("size", "b/1.png"): 1}
    assert recipes(archive, "resume", "measure").code == 0
    assert recipes(archive, "run", "measure", "--no-dagster").code == 0


def test_a_paused_step_holds_back_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    archive = make_archive(tmp_path, ["a/1.png"])
    recipes(archive, "pause", "measure", "--step", "area")
    assert recipes(archive, "run", "measure", "--no-dagster").code == 1
    assert (len(archive.ran("size")), len(archive.ran("area"))) == (1, 0)
    recipes(archive, "resume", "measure", "--step", "area")
    assert recipes(archive, "run", "measure", "--no-dagster").code == 0
    assert (archive.ran("size").total(), archive.ran("area").total()) == (1, 1)


@pytest.mark.slow
def test_a_stop_ends_work_of_this_machine_and_keeps_what_it_finished(tmp_path: Path) -> None:
    names = [f"a/{number:02}.png" for number in range(40)]
    archive = make_archive(tmp_path, names, params={"sleep": 3}, limits={"land_every_pages": 2})
    with open_engine(archive.project()) as engine, open_engine(archive.project()) as other:
        find_pages(engine)
        scope = scope_of(other, "measure")
        (stage,) = stages_of(engine.project.recipe("measure"))
        with pytest.raises(HeldBack, match=r"^Stopped: \d+ of 40 pages through area at local"):
            run_stage(engine, stage, "a/0001", on_landed=lambda _: stop(other, scope) and None)
        assert engine.ledger.tasks.open() == []
        landed = len(engine.library.landed("measure", "size", "a/0001"))
        assert 0 < landed < 40
        assert landed <= archive.ran("size").total() <= landed + 4


def test_now_is_for_the_pages_that_wait_and_not_for_later_ones(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    archive = cloud(tmp_path, rehearsal, PLACE, 3)
    assert "3 pages of letters go now." in recipes(archive, "now", "letters").out
    with archive.engine() as engine:
        run_all(engine)
        assert (sizes(rehearsal, PLACE), rehearsal.counts(PLACE)["plain"]) == ([], 3)
        assert engine.ledger.controls.all() == []
    refused = recipes(archive, "now", "letters")
    assert refused.code == 1
    assert "Nothing of letters waits: 3 of 3 pages have landed." in refused.err
    archive.draw(["b/1.png"])
    assert recipes(archive, "run", "letters", "--no-dagster").code == 0
    assert (sizes(rehearsal, PLACE), rehearsal.counts(PLACE)["plain"]) == ([1], 3)


def test_now_is_refused_for_what_is_paused(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = cloud(tmp_path, rehearsal, PLACE, 1)
    recipes(archive, "pause", "letters")
    refused = recipes(archive, "now", "letters")
    assert refused.code == 1
    assert "can be hurried: letters was paused" in refused.err


def test_resume_knows_recipes_and_places(tmp_path: Path) -> None:
    archive = make_archive(tmp_path, ["a/1.png"])
    assert recipes(archive, "resume", "measure").out == "measure was neither paused nor stopped.\n"
    assert recipes(archive, "resume", "local").out == "local was not paused.\n"
    wrong = recipes(archive, "resume", "mesure")
    assert wrong.code == 2
    assert 'no recipe and no place "mesure"' in wrong.err


def test_a_page_that_is_out_is_not_released(tmp_path: Path, rehearsal: Rehearsal) -> None:
    direct(rehearsal, PLACE, never_ends=True)
    archive = cloud(tmp_path, rehearsal, PLACE, 2)
    with archive.engine() as engine:
        advance_once(engine)
    refused = recipes(archive, "release", "a/0000.png", "--reason", "blank")
    assert refused.code == 1
    assert "a/0000.png is out at anthropic for read" in refused.err


def test_a_page_set_aside_is_held_no_more_and_counts_for_nothing(tmp_path: Path) -> None:
    archive = make_archive(tmp_path, ["a/1.png", "a/2.png"], max_held=0.0)
    (archive.pages / "a" / "2.png").write_bytes(b"no picture")
    assert recipes(archive, "run", "measure", "--no-dagster").code == 1
    released = recipes(archive, "release", "a/2.png", "--reason", "a blank page")
    assert released.out.startswith("a/2.png is set aside at size: a blank page.")
    assert recipes(archive, "held", "measure").out == "measure: no page is held\n"
    assert recipes(archive, "run", "measure", "--no-dagster").code == 0
    recipes(archive, "retry", "measure")
    assert recipes(archive, "held", "measure").out == "measure: no page is held\n"
    recipes(archive, "retry", "measure", "--page", "a/2.png")
    assert "1 page held" in recipes(archive, "held", "measure").out


def test_a_value_by_hand_goes_to_the_steps_that_need_it(tmp_path: Path) -> None:
    archive = make_archive(tmp_path, ["a/1.png"])
    value = '{"width": 3, "height": 4}'
    arguments = ("a/1.png", "--step", "size", "--reason", "measured", "--value", value)
    assert recipes(archive, "release", *arguments).code == 2
    recipes(archive, "discover")
    assert recipes(archive, "release", *arguments).code == 0
    assert recipes(archive, "run", "measure", "--no-dagster").code == 0
    assert archive.ran("size").total() == 0
    with open_engine(archive.project()) as engine:
        (row,) = engine.library.table("measure", "area", "a/0001").to_pylist()
    assert '"area":12' in row["value"]
