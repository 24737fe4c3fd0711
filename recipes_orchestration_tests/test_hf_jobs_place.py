"""Stages on the rehearsed hub, by the real client over real HTTP and with real processes."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from recipes_orchestration.engine.advance import advance
from recipes_orchestration.engine.look import PageState
from recipes_orchestration.rehearsal import HUB, HubScript, Rehearsal

from .hub_archive import advance_to_rest, creates, far_files, hub_archive, sent, until
from .job_archive import first_stage, make_job_archive, run_all, values_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("restored_path")]


def test_two_steps_there_and_one_here_give_what_all_give_here(hub: Rehearsal, tmp_path: Path):
    there = hub_archive(tmp_path, hub)
    here = make_job_archive(tmp_path / "here", None, pages=4)
    with there.engine() as far, here.engine() as near:
        run_all(far)
        run_all(near)
        for step in ("size", "area", "words"):
            assert values_of(far, step) == values_of(near, step)


def test_each_task_is_one_job_that_loads_its_model_once(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, pages_per_task=2)
    with archive.engine() as engine:
        run_all(engine)
    assert creates(hub) == 2
    assert len(archive.loads()) == 2
    assert set(archive.ran().values()) == {1}


def test_running_again_sends_nothing(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub)
    for _ in range(2):
        with archive.engine() as engine:
            run_all(engine)
    assert creates(hub) == 1


def test_each_page_goes_once_for_all_tasks_of_its_batch(hub: Rehearsal, tmp_path: Path):
    names = [f"a/slow{number}.png" for number in range(4)]
    archive = hub_archive(tmp_path, hub, names, pages_per_task=2)
    with archive.engine() as engine:
        sent(engine)
        assert len(far_files(hub, ".png")) == 4
        archive.go()
        advance_to_rest(engine)


def test_nothing_is_left_there_or_here_when_all_has_landed(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, pages_per_task=2)
    with archive.engine() as engine:
        run_all(engine)
    assert far_files(hub) == {}
    assert [each for each in (archive.folder / ".recipes/tasks").rglob("*") if each.is_file()] == []


def test_a_job_is_booked_by_its_minutes_on_its_machine(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, flavor="t4-small")
    with archive.engine() as engine:
        run_all(engine)
        (booking,) = engine.ledger.bookings.all()
    assert (booking.model, booking.mode, booking.basis) == ("t4-small", "job", "listed")
    assert booking.landed_usd == Decimal("0.006667")
    assert booking.wasted_usd == 0
    assert booking.lines == {"landed": 8}


def test_what_failed_on_the_machine_is_booked_as_wasted(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, ["a/1.png", "a/fails.png"], flavor="t4-small")
    with archive.engine() as engine:
        advance_to_rest(engine)
        booking = engine.ledger.bookings.all()[0]
    assert booking.lines == {"landed": 2, "failed": 1}
    assert booking.landed_usd + booking.wasted_usd == Decimal("0.006667")
    assert booking.wasted_usd == Decimal("0.00222233")


def test_the_runner_tells_of_its_models_and_pages(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        run_all(engine)
        facts = engine.ledger.tasks.last_report("letters", first_stage(engine).name, "hf_jobs")
    assert facts is not None
    assert {step["name"]: step["landed"] for step in facts["steps"]} == {"size": 4, "area": 4}
    assert facts["steps"][0]["model_loads"] == 1


def test_a_page_that_fails_is_held_and_the_others_land(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, ["a/1.png", "a/fails.png"])
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["size"].states["a/fails.png"] is PageState.HELD
    assert view.steps["area"].landed == 1


def test_a_lost_reply_is_found_by_its_label_and_not_sent_twice(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(lose_reply=1))
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1


def test_a_job_that_was_refused_for_a_moment_is_sent_again(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(create_status=[503]))
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert len(hub.counts(HUB)["jobs"]) == 1


def test_a_job_of_another_project_with_the_same_pages_is_not_adopted(
    hub: Rehearsal, tmp_path: Path
):
    first, second = (hub_archive(tmp_path / name, hub) for name in ("first", "second"))
    file = second.folder / "project.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), "name": "second"}))
    with first.engine() as engine:
        run_all(engine)
    hub.script(HUB, HubScript(create_status=[503]))
    with second.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    names = [job["labels"]["recipes-task"] for job in hub.counts(HUB)["jobs"]]
    assert len(names) == 2
    assert len(set(names)) == 1


def test_a_page_lost_on_its_way_there_is_sent_again(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(lose_files=["*/pages/*", "*/manifest.json"]))
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1


def test_results_lost_on_their_way_back_are_put_back_again(hub: Rehearsal, tmp_path: Path):
    hub.script(HUB, HubScript(lose_files=["*/results.jsonl"], cut_files=["*/outcome.json"]))
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1


def test_another_process_lands_what_this_one_sent(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub)
    with archive.engine() as engine:
        sent(engine)
    with archive.engine() as engine:
        view = run_all(engine)
    assert view.steps["area"].landed == 4
    assert creates(hub) == 1
    assert far_files(hub) == {}


def test_never_more_jobs_are_open_than_the_cap(hub: Rehearsal, tmp_path: Path):
    names = [f"{folder}/slow.png" for folder in "abc"]
    archive = hub_archive(tmp_path, hub, names, max_open=2)
    with archive.engine() as engine:
        stage = first_stage(engine)
        seen = [advance(engine, stage, f"{folder}/0001") for folder in "abc"]
        assert [bool(each.remote) for each in seen] == [True, True, False]
        archive.go()


def test_all_open_jobs_are_asked_for_by_one_call(hub: Rehearsal, tmp_path: Path):
    names = [f"a/slow{number}.png" for number in range(4)]
    archive = hub_archive(tmp_path, hub, names, pages_per_task=1)
    with archive.engine() as engine:
        ids = [task.remote_id or "" for task in sent(engine).remote]
        before = hub.counts(HUB)
        standings = engine.place("hf_jobs").statuses(ids)
        after = hub.counts(HUB)
        archive.go()
        advance_to_rest(engine)
    assert set(standings) == set(ids)
    assert len(ids) == 4
    assert (after["lists"] - before["lists"], after["gets"] - before["gets"]) == (1, 0)


def test_what_the_hub_would_not_remove_goes_with_the_next_task(hub: Rehearsal, tmp_path: Path):
    archive = hub_archive(tmp_path, hub, ["a/1.png", "b/1.png"])
    with archive.engine() as engine:
        sent(engine)
        until(lambda: far_files(hub, "/out/outcome.json"))
        hub.script(HUB, HubScript(commit_status=[503] * 3))
        advance_to_rest(engine)
        assert far_files(hub)
        run_all(engine, "b/0001")
    assert far_files(hub) == {}


def test_secrets_reach_the_job_and_no_list_shows_them(
    hub: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OCR_KEY", "very-secret")
    note = f"sh -c 'test \"$OCR_KEY\" = very-secret && touch {tmp_path}/seen'"
    archive = hub_archive(tmp_path, hub, secrets=["OCR_KEY"], setup=[note])
    with archive.engine() as engine:
        run_all(engine)
        until((tmp_path / "seen").exists)
    files = [path for path in (archive.folder / ".recipes").rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files)
    assert b"size_to_area" in kept
    assert b"very-secret" not in kept
    assert b"hf_rehearsal" not in kept
